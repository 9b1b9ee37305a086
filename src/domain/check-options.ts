import { type ErrorCode, MillraceError } from "./errors.ts";
import { suggest } from "./suggest.ts";

/** Every option of T and no other: one that is forgotten here does not compile. */
export type Known<T> = Readonly<Record<keyof T, true>>;

export const knownNames = <T>(known: Known<T>): ReadonlySet<string> => new Set(Object.keys(known));

/** What was given must be an object with these fields only: one that is overlooked misleads. */
export function checkOptions(
  what: string,
  options: unknown,
  known: ReadonlySet<string>,
  code: ErrorCode = "OPTION_INVALID",
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new MillraceError(code, `What is said about ${what} must be an object.`);
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw new MillraceError(code, unknownField(what, name, known));
  }
}

function unknownField(what: string, name: string, known: ReadonlySet<string>): string {
  const meant = suggest(name.slice(0, 64), [...known]);
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return `"${name.slice(0, 64)}" is not a field of ${what}.${hint}`;
}

/** PostgreSQL cannot store a NUL, nor half of a character. */
export function checkText(what: string, value: unknown, most: number): string {
  const isText = typeof value === "string" && value.length > 0 && value.length <= most;
  if (isText && !value.includes("\u0000") && value.isWellFormed()) return value;
  throw new MillraceError("OPTION_INVALID", `${what} must be a text of 1 to ${most} characters.`);
}

export function checkFunction(what: string, value: unknown): void {
  if (value === undefined || typeof value === "function") return;
  throw new MillraceError("OPTION_INVALID", `${what} must be a function.`);
}

/** Infinity is a wait too. */
export function checkWait(what: string, ms: unknown): void {
  if (ms === undefined || (typeof ms === "number" && ms >= 0)) return;
  throw new MillraceError("OPTION_INVALID", `${what} must be milliseconds, a number from 0 on.`);
}
