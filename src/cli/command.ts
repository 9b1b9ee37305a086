import type { ParseArgsConfig } from "node:util";
import type { Terminal } from "./terminal.ts";

type OptionsConfig = NonNullable<ParseArgsConfig["options"]>;

export type Values = Readonly<Record<string, string | boolean | undefined>>;

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly help: string;
  /** What stands without a name, in order; found among the values by these names. */
  readonly operands?: readonly string[];
  readonly options: OptionsConfig;
  /** Words that its first operand may be, for the shell's completion. */
  readonly verbs?: readonly string[];
  /** Of a group: what a second word that is no command may have meant. */
  readonly wordHint?: (word: string) => string;
  /** May words that are no options follow? They are refused otherwise. */
  readonly takesWords?: boolean;
  /** Resolves with the exit code. */
  run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number>;
}

/** The command was called wrongly: exit code 2, and a pointer to its help. */
export class UsageError extends Error {}

/** It cannot be done here; `next` says what to do about that. */
export class CommandError extends Error {
  readonly next: string;
  readonly exitCode: number;

  constructor(message: string, next: string, exitCode = 1, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.next = next;
    this.exitCode = exitCode;
  }
}

export function textOption(values: Values, name: string): string | undefined {
  const value = values[name];
  if (value === undefined) return undefined;
  if (typeof value === "string" && value.trim() !== "") return value;
  throw new UsageError(`--${name} needs a value.`);
}

export function numberOption(
  values: Values,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value >= min && value <= max) return value;
  throw new UsageError(`--${name} must be a number from ${min} to ${max}, not "${text}".`);
}

export function wholeOption(
  values: Values,
  name: string,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  const value = numberOption(values, name, range);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new UsageError(`--${name} must be a whole number, not "${values[name]}".`);
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** What stands for a job or a dead letter; refused before anything is connected to. */
export function idOperand(word: unknown): string {
  const id = String(word);
  if (uuid.test(id)) return id;
  throw new UsageError(
    `"${id}" is no id: one looks like 01890a5d-ac96-774b-bcce-b302099a8057, as npx millrace jobs lists them.`,
  );
}

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** 500ms, 30s, 5m, 2h, 1d; a number alone is in seconds. */
export function durationOption(values: Values, name: string): number | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const found = durationOf(text);
  if (found !== undefined) return found;
  throw new UsageError(`--${name} is a time such as 500ms, 30s, 5m, 2h or 1d, not "${text}".`);
}

/** In milliseconds; undefined: this is no time. */
export function durationOf(text: string): number | undefined {
  const [, amount, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim()) ?? [];
  if (amount === undefined) return undefined;
  return Math.round(Number(amount) * unitMs[unit as keyof typeof unitMs]);
}

/** Names with commas between them. */
export function listOption(values: Values, name: string): string[] | undefined {
  const names = textOption(values, name)
    ?.split(",")
    .map((one) => one.trim());
  if (names === undefined) return undefined;
  if (names.every((one) => one !== "")) return names;
  throw new UsageError(`--${name} is a list such as a,b,c.`);
}
