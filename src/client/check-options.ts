import { type ErrorCode, MillraceError } from "../domain/errors.ts";

/** What was given must be an object with these fields only: one that is overlooked misleads. */
export function checkOptions(
  what: string,
  options: unknown,
  known: ReadonlySet<string>,
  code: ErrorCode = "OPTION_INVALID",
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new MillraceError(code, `What is said about ${what} must be an object.`);
  const unknown = Object.keys(options).find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new MillraceError(code, `"${unknown}" is not a field of ${what}.`);
}
