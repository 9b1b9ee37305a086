import { type ErrorCode, MillraceError } from "./errors.ts";
import { isPlain } from "./plain-object.ts";
import { suggest } from "./suggest.ts";

/** Every option of T and no other: one that is forgotten here does not compile. */
export type Known<T> = Readonly<Record<keyof T, true>>;

export const knownNames = <T>(known: Known<T>): ReadonlySet<string> => new Set(Object.keys(known));

/** What was given must be a plain object with these fields only: one that is overlooked misleads. */
export function checkOptions(
  what: string,
  options: unknown,
  known: ReadonlySet<string>,
  code: ErrorCode = "OPTION_INVALID",
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new MillraceError(code, `What is said about ${what} must be an object.`);
  if (!isPlain(options)) throw new MillraceError(code, notPlain(what, options));
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw new MillraceError(code, unknownField(what, name, known));
  }
}

/** A promise and a Map have no fields of their own, so nothing that they say would be seen. */
function notPlain(what: string, options: object): string {
  if ("then" in options && typeof options.then === "function")
    return `What is said about ${what} is a promise: an await is missing.`;
  return `What is said about ${what} must be a plain object, not an instance of a class.`;
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

export function checkSignal(value: unknown): void {
  if (value === undefined || value instanceof AbortSignal) return;
  throw new MillraceError("OPTION_INVALID", "signal must be an AbortSignal.");
}

/** A part that the caller brings along, such as a log: it must have what is called on it. */
export function checkMethods(what: string, value: unknown, methods: readonly string[]): void {
  if (value === undefined) return;
  const part = value as Readonly<Record<string, unknown>> | null;
  if (part !== null && methods.every((name) => typeof part[name] === "function")) return;
  const message = `${what} must have the functions ${methods.join(", ")}.`;
  throw new MillraceError("OPTION_INVALID", message);
}

/** Infinity is a wait too. */
export function checkWait(what: string, ms: unknown): void {
  if (ms === undefined || (typeof ms === "number" && ms >= 0)) return;
  throw new MillraceError("OPTION_INVALID", `${what} must be milliseconds, a number from 0 on.`);
}
