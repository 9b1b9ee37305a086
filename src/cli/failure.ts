// What a person reads when a command fails: what happened, its code, and what to do next.

import { type ErrorCode, MillraceError } from "../domain/errors.ts";
import type { Terminal } from "./terminal.ts";

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
  OPTION_INVALID: "Change that option or environment variable and try again.",
};

export function printFailure(error: unknown, terminal: Terminal): void {
  const known = error instanceof MillraceError;
  const message = error instanceof Error ? error.message : String(error);
  terminal.printError(`${terminal.style("red", "error")}: ${message}`);
  if (known) terminal.printError(`code:  ${error.code}`);
  const next = known
    ? nextSteps[error.code]
    : "This looks like a bug in Millrace. Run it again with LOG_LEVEL=debug for the details.";
  if (next !== undefined) terminal.printError(`next:  ${next}`);
  const { logLevel } = terminal.settings;
  if (logLevel !== "debug" && logLevel !== "trace") return;
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    terminal.printError(cause.stack ?? String(cause));
}
