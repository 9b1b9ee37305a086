// From words on a command line to a command that runs, and from what it throws to an exit code.

import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { suggest } from "../domain/suggest.ts";
import { type Command, UsageError, type Values } from "./command.ts";
import { commands, sections } from "./commands.ts";
import { exitCodeHelp, exitCodes } from "./exit-codes.ts";
import { failureCode, printFailure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

const help = `millrace – a durable job queue for TypeScript

Usage: millrace <command> [options]

${sections.map(sectionHelp).join("\n\n")}

Options:
  -h, --help     this text, or that of a command: npx millrace dev --help
  -v, --version  the version of the npm package

Environment:
  DATABASE_URL   a PostgreSQL 14 or newer; without it an embedded one under ./.millrace
  REDIS_URL      a Redis that makes dispatch faster; LOG_LEVEL: debug shows what happens

Exit codes:
${exitCodeHelp}

Try it:
  npx millrace dev             watch jobs run on a database that needs no setting up
  npx millrace worker --demo   run the built-in jobs, and beside it make one:
  npx millrace enqueue echo '{"hello":"world"}' --wait 10s
`;

function sectionHelp({ title, commands }: (typeof sections)[number]): string {
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(18)}${summary}`);
  return `${title}:\n${lines.join("\n")}`;
}

/** Resolves with the exit code, whatever happens. */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await run(args, terminal);
  } catch (error) {
    if (!(error instanceof UsageError)) {
      printFailure(error, terminal);
      return failureCode(error);
    }
    terminal.printError(plain(usage(error, args)));
    return exitCodes.usage;
  }
}

async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const print = (text: string) => {
    terminal.print(text);
    return exitCodes.done;
  };
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") return print(await version());
  if (name === "--help" || name === "-h" || name === "help") return print(helpOf(rest));
  if (name === undefined) {
    print(helpOf([]));
    return exitCodes.usage;
  }
  const { command, words: found } = findCommand(args);
  if (command === undefined && (rest[0] === "--help" || rest[0] === "-h"))
    return print(helpOf([name]));
  if (command === undefined) throw new UsageError(unknownCommand(found));
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
  // What has an equals sign is a condition, as in `dlq type=mail.send`.
  if (isGroup && second !== undefined && !second.startsWith("-") && !second.includes("="))
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
  if (missing !== undefined) throw new UsageError(which(missing[0] ?? "", command));
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

function usage(error: UsageError, args: readonly string[]): string {
  const { command, words } = findCommand(args);
  const about = command?.name ?? (secondWords(words).length > 0 ? words : "");
  return `${error.message} See: npx millrace ${about === "" ? "" : `${about} `}--help`;
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

const which = (operand: string, { verbs }: Command): string =>
  verbs === undefined ? `Which ${operand}?` : `Which ${operand}: ${verbs.join(", ")}?`;

/** A group that takes words, as dlq does conditions, says what they look like. */
function unknownCommand(words: string): string {
  const seconds = secondWords(words);
  if (seconds.length > 0) return `${words} what? ${seconds.join(", ")}.`;
  const [first, second = ""] = words.split(" ");
  const said = unknown("command", words, names());
  const hint = second === "" ? undefined : commands.find(({ name }) => name === first)?.wordHint;
  return hint === undefined || said.includes("Did you mean") ? said : `${said} ${hint(second)}`;
}

const names = () => [...commands.map(({ name }) => name), "help"];

function helpOf(args: readonly string[]): string {
  if (args.length === 0) return help.trimEnd();
  const { command, words } = findCommand(args);
  if (command !== undefined) return command.help.trimEnd();
  if (secondWords(words).length > 0) return groupHelp(words);
  throw new UsageError(unknownCommand(words));
}

/** Of a word that is no command by itself, as of `keys`: what its commands are called. */
const secondWords = (word: string): string[] =>
  groupOf(word).map(({ name }) => name.slice(word.length + 1));

const groupOf = (word: string): readonly Command[] =>
  commands.filter(({ name }) => name.startsWith(`${word} `));

function groupHelp(word: string): string {
  const lines = groupOf(word).map(({ name, summary }) => `  ${name.padEnd(18)}${summary}`);
  return `millrace ${word} – these commands begin with it:

${lines.join("\n")}

Each has its own help: npx millrace ${groupOf(word)[0]?.name} --help`;
}

async function version(): Promise<string> {
  const file = new URL("../../package.json", import.meta.url);
  return JSON.parse(await readFile(file, "utf8")).version;
}
