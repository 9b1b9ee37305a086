// What a command's exit code means: one table for all of them, in docs/guides/command-line.md as well.

import type { ErrorCode } from "../domain/errors.ts";

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  unconfirmed: 5,
} as const;

/** What was asked is understood and there, but rules, limits or its state do not allow it. */
const refusals: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "PAYLOAD_INVALID",
  "PAYLOAD_TOO_LARGE",
  "IDEMPOTENCY_CONFLICT",
  "REFERENCE_TAKEN",
  "QUEUE_FULL",
  "QUEUE_INACTIVE",
  "RATE_LIMITED",
  "ILLEGAL_TRANSITION",
  "JOB_FAILED",
  "KEY_BUSY",
  "TARGET_NOT_EMPTY",
]);

export function exitCodeOf(code: ErrorCode): number {
  if (code.endsWith("_NOT_FOUND")) return exitCodes.notFound;
  return refusals.has(code) ? exitCodes.refused : exitCodes.failed;
}

export const exitCodeHelp = `  0  it did what was asked           3  there is no such job, queue, trigger …
  1  it failed                       4  a rule, a limit or the state refuses it
  2  it was called wrongly           5  it was not confirmed`;
