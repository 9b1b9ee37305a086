import { MillraceError } from "../domain/errors.ts";

/** By PostgreSQL. */
const unstorable = /\0|\p{Surrogate}/u;

export function needReason(reason: unknown): string {
  const isText = typeof reason === "string" && reason.trim() !== "" && reason.length <= 2_000;
  if (isText && !unstorable.test(reason)) return reason;
  throw new MillraceError(
    "REASON_REQUIRED",
    "Give a reason of at most 2,000 characters, without U+0000 and halves of characters.",
  );
}
