#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { loadTerminalSettings, type TerminalSettings } from "../config.ts";
import { suggest } from "../domain/suggest.ts";
import { auditVerify } from "./audit-verify.ts";
import { breakers } from "./breakers.ts";
import { type Command, UsageError, type Values } from "./command.ts";
import { dev } from "./dev.ts";
import { explain } from "./explain.ts";
import { printFailure } from "./failure.ts";
import { keysCreate, keysList, keysRevoke } from "./keys.ts";
import { manager } from "./manager.ts";
import { migrate } from "./migrate.ts";
import { serve } from "./serve.ts";
import { Terminal } from "./terminal.ts";

const commands: readonly Command[] = [
  dev,
  serve,
  manager,
  migrate,
  explain,
  keysCreate,
  keysList,
  keysRevoke,
  auditVerify,
  breakers,
];

const help = `millrace – a durable job queue for TypeScript

Usage: millrace <command> [options]

Commands:
${commands.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`).join("\n")}

Options:
  -h, --help     this text, or that of a command: millrace dev --help
  -v, --version  the version of the npm package

Try it:
  millrace dev             watch jobs run on a database that needs no setting up
  millrace migrate --dry-run
`;

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") return print(await version());
  if (name === "--help" || name === "-h" || name === "help") return printHelp(rest);
  if (name === undefined) throw new UsageError("Which command?");
  const { command, words: found } = findCommand(args);
  if (command === undefined) throw new UsageError(unknown("command", found, names()));
  const { values, words } = parse(command, args.slice(found.split(" ").length));
  if (values.help === true) return print(command.help.trimEnd());
  return command.run(values, terminal, words);
}

/** A command has one word or two: `serve`, `keys create`. */
function findCommand(args: readonly string[]): { command: Command | undefined; words: string } {
  const known = (words: string) => commands.find((one) => one.name === words);
  const [first = "", second] = args;
  const two = `${first} ${second}`;
  const isGroup = commands.some((one) => one.name.startsWith(`${first} `));
  if (isGroup && second !== undefined && !second.startsWith("-"))
    return { command: known(two), words: two };
  return { command: known(first), words: first };
}

function parse(command: Command, args: string[]): { values: Values; words: readonly string[] } {
  const options = { ...command.options, help: { type: "boolean", short: "h" } } as const;
  const { operands = [] } = command;
  const allowPositionals = operands.length > 0 || command.takesWords === true;
  const parsed = read(() => parseArgs({ args, options, strict: true, allowPositionals }));
  const words = parsed.positionals;
  if (parsed.values.help === true || command.takesWords === true)
    return { values: parsed.values as Values, words };
  const given = operands.map((name, i) => [name, words[i]]);
  const missing = given.find(([, value]) => value === undefined);
  if (missing !== undefined) throw new UsageError(`Which ${missing[0]}?`);
  const [extra] = words.slice(operands.length);
  if (extra !== undefined) throw new UsageError(`"${extra}" is one word too many.`);
  return { values: { ...(parsed.values as Values), ...Object.fromEntries(given) }, words };

  function read<T>(parseAll: () => T): T {
    try {
      return parseAll();
    } catch (error) {
      throw new UsageError(reason(error, Object.keys(options)));
    }
  }
}

function usage(error: UsageError): string {
  const { command } = findCommand(process.argv.slice(2));
  return `${error.message} See: millrace ${command === undefined ? "" : `${command.name} `}--help`;
}

function reason(error: unknown, known: readonly string[]): string {
  const message = error instanceof Error ? error.message : String(error);
  const option = message.match(/Unknown option '--([^']+)'/)?.[1];
  if (option !== undefined)
    return unknown(
      "option",
      `--${option}`,
      known.map((one) => `--${one}`),
    );
  const [first = message] = message.split(/\. |\n/);
  return `${first.replace(/\.$/, "")}.`;
}

function unknown(what: string, word: string, known: readonly string[]): string {
  const meant = suggest(word, known);
  return `There is no ${what} "${word}".${meant === undefined ? "" : ` Did you mean "${meant}"?`}`;
}

const names = () => [...commands.map(({ name }) => name), "help"];

function printHelp(args: readonly string[]): number {
  if (args.length === 0) return print(help.trimEnd());
  const { command, words } = findCommand(args);
  if (command === undefined) throw new UsageError(unknown("command", words, names()));
  return print(command.help.trimEnd());
}

function print(text: string): number {
  terminal.print(text);
  return 0;
}

async function version(): Promise<string> {
  const file = new URL("../../package.json", import.meta.url);
  return JSON.parse(await readFile(file, "utf8")).version;
}

const terminal = new Terminal(settings(), process.stdout, process.stderr);

/** A bad LOG_LEVEL must not keep the help from being read; whoever connects will refuse it. */
function settings(): TerminalSettings {
  try {
    return loadTerminalSettings();
  } catch {
    return { colour: false, logLevel: undefined };
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof UsageError) terminal.printError(usage(error));
  else printFailure(error, terminal);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
