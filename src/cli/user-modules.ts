// A user's job definitions, from modules that lie on this machine and were named at start. Nothing is
// ever loaded because a job or a database says so.

import { existsSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { AnyJobDefinition } from "../worker/job-definition.ts";
import { CommandError, UsageError } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { plain } from "./text.ts";

const scripts = new Set([".js", ".mjs", ".cjs"]);
const typeScripts = new Set([".ts", ".mts", ".cts", ".tsx"]);

/** Where the module lies. Refuses what is no file here: a URL, a package, a folder. */
export function findModule(name: string): string {
  if (/^[a-z][a-z\d+.-]+:/i.test(name))
    throw new UsageError(`"${plain(name)}" is a URL: a worker runs modules of this machine only.`);
  const path = resolve(name);
  if (!existsSync(path))
    throw new CommandError(`There is no file ${plain(path)}.`, nearby(name), 3);
  if (statSync(path).isDirectory())
    throw new CommandError(
      `${plain(path)} is a folder.`,
      "Name the module in it.",
      exitCodes.usage,
    );
  const type = extname(path);
  if (scripts.has(type) || typeScripts.has(type)) return path;
  throw new UsageError(`${plain(path)} is neither JavaScript nor TypeScript.`);
}

function nearby(name: string): string {
  const types = [...typeScripts, ...scripts];
  const base = name.replace(/\.\w+$/, "");
  const found = types.map((type) => `${base}${type}`).find((one) => existsSync(resolve(one)));
  return found === undefined
    ? "Name a module that exports jobs made by defineJob; npx millrace init writes a first one."
    : `Did you mean ${found}?`;
}

export interface Loaded {
  readonly definitions: readonly AnyJobDefinition[];
  /** Types that are defined here and run elsewhere. */
  readonly withoutHandler: readonly string[];
}

export async function loadDefinitions(paths: readonly string[]): Promise<Loaded> {
  const found = new Set<AnyJobDefinition>();
  for (const path of paths) {
    const before = found.size;
    for (const one of exportsOf(await importModule(path))) found.add(one);
    if (found.size === before)
      throw new CommandError(
        `${plain(path)} exports no job.`,
        'Export what defineJob returns: export const hello = defineJob({ type: "hello", run … });',
      );
  }
  const all = [...found];
  refuseTwins(all);
  return {
    definitions: all.filter(({ run }) => run !== undefined),
    withoutHandler: all.filter(({ run }) => run === undefined).map(({ type }) => type),
  };
}

function refuseTwins(all: readonly AnyJobDefinition[]): void {
  const types = all.map(({ type }) => type);
  const twin = types.find((type, at) => types.indexOf(type) !== at);
  if (twin === undefined) return;
  throw new CommandError(`Two jobs have the type "${plain(twin)}".`, "Give one of them another.");
}

/** Named exports, the default, and lists of either; a CommonJS module's exports are its default. */
function* exportsOf(module: object): Generator<AnyJobDefinition> {
  for (const value of Object.values(module)) {
    if (isDefinition(value)) yield value;
    else if (Array.isArray(value)) yield* value.filter(isDefinition);
  }
  const { default: given } = module as { readonly default?: unknown };
  if (typeof given === "object" && given !== null && !isDefinition(given) && !Array.isArray(given))
    yield* exportsOf(given);
}

/** The package that made it may be another copy than ours, so it is known by its looks. */
function isDefinition(value: unknown): value is AnyJobDefinition {
  if (typeof value !== "object" || value === null) return false;
  const { type, queue, run, rules, delaysWhenLimited } = value as Record<string, unknown>;
  return (
    typeof type === "string" &&
    typeof queue === "string" &&
    typeof rules === "object" &&
    typeof delaysWhenLimited === "boolean" &&
    (run === undefined || typeof run === "function")
  );
}

async function importModule(path: string): Promise<object> {
  const url = pathToFileURL(path).href;
  try {
    if (!typeScripts.has(extname(path))) return await import(url);
    return await importTypeScript(url);
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    const error = new CommandError(
      `${plain(path)} cannot be loaded: ${why}`,
      "Mend that module. LOG_LEVEL=debug shows where it comes from.",
    );
    error.cause = cause;
    throw error;
  }
}

/** What Node says about TypeScript that is more than types, and about imports it does not resolve. */
const beyondNode = new Set([
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
  "ERR_INVALID_TYPESCRIPT_SYNTAX",
  "ERR_UNKNOWN_FILE_EXTENSION",
  "ERR_MODULE_NOT_FOUND",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
]);

async function importTypeScript(url: string): Promise<object> {
  if (stripsTypes()) {
    try {
      return await import(url);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "";
      if (!beyondNode.has(code)) throw error;
    }
  }
  await registerLoader();
  return import(url);
}

const stripsTypes = (): boolean =>
  Boolean((process.features as { readonly typescript?: unknown }).typescript);

let registered: Promise<void> | undefined;

function registerLoader(): Promise<void> {
  registered ??= (async () => {
    try {
      const [esm, cjs] = await Promise.all([import("tsx/esm/api"), import("tsx/cjs/api")]);
      cjs.register();
      esm.register();
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND"))
        throw cause;
      throw new CommandError(
        `Node ${process.versions.node} does not run TypeScript by itself.`,
        "Install the loader (npm install tsx), use Node 22.18 or newer, or name compiled JavaScript.",
      );
    }
  })();
  return registered;
}
