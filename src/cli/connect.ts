import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { Millrace } from "../client/millrace.ts";
import { loadConfig } from "../config.ts";
import { createLog } from "../runtime/log.ts";
import { CommandError, textOption, type Values } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

/** What every command that works on the database takes. */
export const databaseOptions = {
  "data-dir": { type: "string" },
  schema: { type: "string" },
} as const;

export const databaseHelp = `  --data-dir <dir>   where the embedded database lives (default: MILLRACE_DATA_DIR or ./.millrace)
  --schema <name>    the schema to work on (default: millrace)`;

/** What the options say about the database, as `Millrace.connect` takes it. */
export function databaseChoice(values: Values): { dataDir?: string; schema?: string } {
  const dataDir = textOption(values, "data-dir");
  const schema = textOption(values, "schema");
  return {
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(schema === undefined ? {} : { schema }),
  };
}

export function connect(
  values: Values,
  terminal: Terminal,
  migrate: boolean = true,
): Promise<Millrace> {
  const logLevel = terminal.settings.logLevel ?? "silent";
  return Millrace.connect({
    ...databaseChoice(values),
    migrate,
    logLevel,
    log: createLog(logLevel, "stderr"),
  });
}

/**
 * Who only looks makes no database: an empty one would answer as if there were no jobs. Says which it is:
 * on a server the schema belongs to somebody, the embedded one is all ours.
 */
export function needDatabase(values: Values): "server" | "embedded" {
  const { databaseUrl, dataDir } = loadConfig(databaseChoice(values));
  if (databaseUrl !== undefined) return "server";
  if (existsSync(join(dataDir, "cluster"))) return "embedded";
  throw new CommandError(
    `There is no database: DATABASE_URL is not set, and ${resolve(dataDir)} holds none.`,
    "Set DATABASE_URL, go to the folder of your project, name one with --data-dir, or start one: npx millrace dev",
    exitCodes.notFound,
  );
}

/** Connects to what is there, makes and migrates no schema on a server, and lets go whatever happens. */
export async function withMillrace<T>(
  values: Values,
  terminal: Terminal,
  use: (millrace: Millrace) => Promise<T>,
): Promise<T> {
  const kind = needDatabase(values);
  const millrace = await connect(values, terminal, kind === "embedded");
  try {
    return await use(millrace);
  } finally {
    await millrace.stop();
  }
}
