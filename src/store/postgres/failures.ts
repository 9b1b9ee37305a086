// What PostgreSQL's errors mean to us.

import { MillraceError } from "../../domain/errors.ts";

const code = (error: unknown): string =>
  typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : "";

/** The connection is gone or unusable; whether the statement took effect is unknown. */
export function isConnectionError(error: unknown): boolean {
  const value = code(error);
  if (value.startsWith("08") || value.startsWith("57P0")) return true;
  // A transaction idled longer than it may: the server has ended the session.
  if (value === "25P03") return true;
  if (/^E[A-Z]+$/.test(value)) return true;
  return (
    error instanceof Error &&
    /connection|no answer from PostgreSQL|timeout expired|read timeout|trying to connect|use a pool after/i.test(
      error.message,
    ) &&
    value === ""
  );
}

/** The coded error for a database that cannot be reached, or not be written to; any other error as it is. */
export function asCoded(error: unknown): unknown {
  if (isReadOnly(error)) return readOnly(error);
  if (!isConnectionError(error)) return error;
  return new MillraceError("DATABASE_UNAVAILABLE", undefined, { cause: error });
}

/** Writes are refused: this is a standby, or somebody has set it so. */
const isReadOnly = (error: unknown): boolean => code(error) === "25006";

function readOnly(cause: unknown): MillraceError {
  const advice =
    "If it is a standby, connect to the primary. Otherwise default_transaction_read_only is on, for the server, " +
    "the database, the role or in DATABASE_URL; hosted servers do that when their disk is full.";
  return new MillraceError(
    "DATABASE_READ_ONLY",
    `PostgreSQL is read-only: ${why(cause)}. ${advice}`,
    {
      cause,
    },
  );
}

/** What migrations meet where tables, columns or functions of these names are somebody else's. */
const foreignObjects = new Set([
  "42P01",
  "42P07",
  "42701",
  "42703",
  "42710",
  "42723",
  "42804",
  "42809",
]);

/** The coded error for a schema that is not ours; any other error as it is. */
export function asTaken(error: unknown, schema: string): unknown {
  if (!foreignObjects.has(code(error))) return error;
  const advice = "Name another schema, or move those tables elsewhere.";
  return new MillraceError(
    "SCHEMA_TAKEN",
    `Schema "${schema}" holds what is not Millrace's: ${why(error)}. ${advice}`,
    { cause: error },
  );
}

const certificateRefused = /^(?:ERR_TLS_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/;

/** Nothing happened and the same statement may well succeed next time. */
export function isRetryable(error: unknown): boolean {
  return ["40001", "40P01", "55P03", "53300"].includes(code(error));
}

/** Somebody, or a statement_timeout, has ended the statement: nothing happened. */
export const isCancelled = (error: unknown): boolean => code(error) === "57014";

export const isLockTimeout = (error: unknown): boolean => code(error) === "55P03";

/** A history partition is missing (check_violation on a partitioned table). */
export const isMissingPartition = (error: unknown): boolean =>
  code(error) === "23514" &&
  error instanceof Error &&
  /no partition of relation/.test(error.message);

/** The role lacks a right. */
export const isMissingRight = (error: unknown): boolean => code(error) === "42501";

/** What was to be stored is at fault, and will be next time too. */
export const isDataError = (error: unknown): boolean =>
  /^2[23]/.test(code(error)) && !isMissingPartition(error);

export const isUniqueViolation = (error: unknown): boolean => code(error) === "23505";

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const refused = (cause: unknown, advice: string): MillraceError =>
  new MillraceError("DATABASE_REFUSED", `PostgreSQL refused: ${why(cause)}. ${advice}`, { cause });

/** The driver gives up on the login by itself, and says so in its own words. */
function brokenOff(cause: unknown): MillraceError {
  if (!/password must be a/.test(why(cause)))
    return refused(cause, "Check the password in DATABASE_URL, and the server's authentication.");
  const message =
    "PostgreSQL refused: it asks for a password, and none was given. Put one into DATABASE_URL.";
  return new MillraceError("DATABASE_REFUSED", message, { cause });
}

/** What a connect may fail with, as a coded error that says what to do; any other error as it is. */
export function asRefusedConnect(error: unknown): unknown {
  const value = code(error);
  if (value === "3D000") return refused(error, "Create the database, or correct DATABASE_URL.");
  if (value === "55000") return refused(error, "Name another database in DATABASE_URL.");
  if (value.startsWith("28"))
    return refused(error, "Check the user and the password in DATABASE_URL, and pg_hba.conf.");
  if (value === "" && why(error).startsWith("SASL: ")) return brokenOff(error);
  if (value === "42501")
    return refused(error, "Grant the role its rights: see docs/guides/security.md.");
  if (certificateRefused.test(value))
    return refused(error, "Check the certificate, sslmode and sslrootcert in DATABASE_URL.");
  if (value === "ERR_INVALID_URL")
    // The cause is left out: it holds the URL, and that may hold a password.
    return new MillraceError("OPTION_INVALID", "DATABASE_URL is not a URL that can be read.");
  if (!isConnectionError(error)) return asCoded(error);
  // A name with several addresses fails once for each of them, and says nothing itself.
  const tries = error instanceof AggregateError ? error.errors : [error];
  const message = `PostgreSQL cannot be reached: ${[...new Set(tries.map(why))].join("; ")}`;
  return new MillraceError("DATABASE_UNAVAILABLE", message, { cause: tries[0] });
}
