import { MillraceError } from "../domain/errors.ts";

export function needReason(reason: unknown): string {
  const isText = typeof reason === "string" && reason.trim() !== "" && reason.length <= 2_000;
  // PostgreSQL cannot store a NUL.
  if (isText && !reason.includes("\u0000")) return reason;
  throw new MillraceError("REASON_REQUIRED", "Give a reason of at most 2,000 characters.");
}
