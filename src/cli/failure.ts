// What a person reads when a command fails: what happened, its code, and what to do next.

import { type ErrorCode, MillraceError } from "../domain/errors.ts";
import { CommandError } from "./command.ts";
import { exitCodeOf, exitCodes } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";
import { plainLines } from "./text.ts";

/** Where <id> stands, the id that the message names takes its place. */
const nextSteps: Partial<Record<ErrorCode, string>> = {
  DATABASE_UNAVAILABLE:
    "Check that PostgreSQL runs and that DATABASE_URL is right; or unset it to use the embedded one.",
  DATABASE_REFUSED: "Ask whoever runs PostgreSQL, or unset DATABASE_URL to use the embedded one.",
  DATABASE_READ_ONLY: "Name the primary in DATABASE_URL, or have writing allowed again.",
  DATABASE_UNSUPPORTED:
    "Use PostgreSQL 14 or newer, or unset DATABASE_URL to use the embedded one.",
  EMBEDDED_UNAVAILABLE:
    "server.log in the data folder may say more; --data-dir chooses another folder.",
  SCHEMA_OUTDATED: "Run: npx millrace migrate",
  SCHEMA_TOO_NEW: "Update the npm package millrace.",
  SCHEMA_TAKEN: "Name another schema with --schema.",
  JOB_NOT_FOUND:
    "List jobs with: npx millrace jobs. Ended jobs are kept as long as their queue's retention says.",
  QUEUE_NOT_FOUND: "List queues with: npx millrace queues",
  TRIGGER_NOT_FOUND: "List triggers with: npx millrace triggers",
  BREAKER_NOT_FOUND: "List breakers with: npx millrace breakers",
  DEAD_LETTER_NOT_FOUND: "List dead letters with: npx millrace dlq",
  API_KEY_NOT_FOUND: "List keys with: npx millrace keys list",
  ILLEGAL_TRANSITION: "See how far it is with: npx millrace jobs show <id>",
  TIMEOUT: "The job stays. See what it waits for with: npx millrace explain <id>",
  TARGET_NOT_EMPTY: "Name another database, or another schema with --schema.",
  OPTION_INVALID: "Change that option or environment variable and try again.",
};

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;

export function failureCode(error: unknown): number {
  if (error instanceof CommandError) return error.exitCode;
  return error instanceof MillraceError ? exitCodeOf(error.code) : exitCodes.failed;
}

export function printFailure(error: unknown, terminal: Terminal): void {
  const message = error instanceof Error ? error.message : String(error);
  terminal.printError(`${terminal.style("red", "error")}: ${plainLines(message)}`);
  const code = codeOf(error);
  if (code !== undefined) terminal.printError(`code:  ${code}`);
  const next = nextOf(error, message);
  if (next !== undefined) terminal.printError(`next:  ${next}`);
  const { logLevel } = terminal.settings;
  if (logLevel !== "debug" && logLevel !== "trace") return;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    terminal.printError(cause.stack ?? String(cause));
}

/** A command that knows better what to do next keeps the code of what it met. */
function codeOf(error: unknown): ErrorCode | undefined {
  const coded = error instanceof CommandError ? error.cause : error;
  return coded instanceof MillraceError ? coded.code : undefined;
}

function nextOf(error: unknown, message: string): string | undefined {
  if (error instanceof CommandError) return error.next;
  if (!(error instanceof MillraceError))
    return "This looks like a bug in Millrace. Run it again with LOG_LEVEL=debug for the details.";
  const [id = "<id>"] = uuid.exec(message) ?? [];
  return nextSteps[error.code]?.replace("<id>", id);
}
