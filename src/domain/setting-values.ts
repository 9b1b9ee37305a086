// Values of options and environment variables, checked by name.

import { MillraceError } from "./errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export const blankToNone = (value: string | undefined) =>
  value?.trim() ? value.trim() : undefined;

export function whole(name: string, value: number, min: number, max = 2_147_483_647): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new MillraceError(
    "OPTION_INVALID",
    `${name} must be a whole number from ${min} to ${max}.`,
  );
}

export function flag(name: string, value: string | undefined): boolean | undefined {
  const text = blankToNone(value)?.toLowerCase();
  if (text === undefined) return undefined;
  if (["true", "1", "yes", "on"].includes(text)) return true;
  if (["false", "0", "no", "off"].includes(text)) return false;
  throw new MillraceError("OPTION_INVALID", `${name} must be true or false.`);
}

/** Of an option: any text would be taken for true, "false" too. */
export function isOn(name: string, value: unknown): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "boolean") return value;
  throw new MillraceError("OPTION_INVALID", `${name} must be true or false.`);
}

export function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw new MillraceError("OPTION_INVALID", `${name} must be a text.`);
}

export function oneOf(name: string, value: string, allowed: readonly string[]): string {
  if (allowed.includes(value)) return value;
  throw new MillraceError("OPTION_INVALID", `${name} must be one of ${allowed.join(", ")}.`);
}
