// What a person reads when a command fails: what happened, its code, and what to do next.

import { type ErrorCode, MillraceError } from "../domain/errors.ts";
import { CommandError } from "./command.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";
import { plainLines } from "./text.ts";

const nextSteps: Partial<Record<ErrorCode, string>> = {
  DATABASE_UNAVAILABLE:
    "Check that PostgreSQL runs and that DATABASE_URL is right; or unset it to use the embedded one.",
  DATABASE_REFUSED: "Ask whoever runs PostgreSQL, or unset DATABASE_URL to use the embedded one.",
  DATABASE_UNSUPPORTED:
    "Use PostgreSQL 14 or newer, or unset DATABASE_URL to use the embedded one.",
  EMBEDDED_UNAVAILABLE:
    "server.log in the data folder may say more; --data-dir chooses another folder.",
  SCHEMA_OUTDATED: "Run: millrace migrate",
  SCHEMA_TOO_NEW: "Update the npm package millrace.",
  JOB_NOT_FOUND:
    "List jobs with: millrace jobs. Ended jobs are kept as long as their queue's retention says.",
  QUEUE_NOT_FOUND: "List queues with: millrace queues",
  TRIGGER_NOT_FOUND: "List triggers with: millrace triggers",
  BREAKER_NOT_FOUND: "List breakers with: millrace breakers",
  DEAD_LETTER_NOT_FOUND: "List dead letters with: millrace dlq",
  API_KEY_NOT_FOUND: "List keys with: millrace keys list",
  ILLEGAL_TRANSITION: "See how far it is with: millrace jobs show <id>",
  TARGET_NOT_EMPTY: "Name another database, or another schema with --schema.",
  OPTION_INVALID: "Change that option or environment variable and try again.",
};

export function failureCode(error: unknown): number {
  if (error instanceof CommandError) return error.exitCode;
  return error instanceof MillraceError ? exitCodeOf(error.code) : exitCodes.failed;
}

export function printFailure(error: unknown, terminal: Terminal): void {
  const known = error instanceof MillraceError;
  const message = error instanceof Error ? error.message : String(error);
  terminal.printError(`${terminal.style("red", "error")}: ${plainLines(message)}`);
  if (known) terminal.printError(`code:  ${error.code}`);
  const next = known
    ? nextSteps[error.code]
    : error instanceof CommandError
      ? error.next
      : "This looks like a bug in Millrace. Run it again with LOG_LEVEL=debug for the details.";
  if (next !== undefined) terminal.printError(`next:  ${next}`);
  const { logLevel } = terminal.settings;
  if (logLevel !== "debug" && logLevel !== "trace") return;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    terminal.printError(cause.stack ?? String(cause));
}
