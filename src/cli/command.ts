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
  /** May words that are no options follow? They are refused otherwise. */
  readonly takesWords?: boolean;
  /** Resolves with the exit code. */
  run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number>;
}

/** The command was called wrongly: exit code 2, and a pointer to its help. */
export class UsageError extends Error {}

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
