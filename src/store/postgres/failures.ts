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
    /connection|no answer from PostgreSQL|timeout expired|read timeout|trying to connect/i.test(
      error.message,
    ) &&
    value === ""
  );
}

/** The coded error for a database that cannot be reached; any other error as it is. */
export function asUnavailable(error: unknown): unknown {
  if (!isConnectionError(error)) return error;
  return new MillraceError("DATABASE_UNAVAILABLE", undefined, { cause: error });
}

const certificateRefused = /^(?:ERR_TLS_|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/;

/** The role, its password, its rights, the database's name or the certificate: no use in asking again. */
function isTurnedAway(error: unknown): boolean {
  const value = code(error);
  return (
    value.startsWith("28") || /^(?:3D000|42501)$/.test(value) || certificateRefused.test(value)
  );
}

/** What opening a store failed with, coded and with the reason said; any other error as it is. */
export function asUnreachable(error: unknown): unknown {
  const isRefused = isTurnedAway(error);
  if (!isRefused && !isConnectionError(error)) return error;
  const why = error instanceof Error ? error.message : String(error);
  const what = isRefused ? "PostgreSQL does not let us in" : "PostgreSQL cannot be reached";
  return new MillraceError("DATABASE_UNAVAILABLE", `${what}: ${why}`, { cause: error });
}

/** Nothing happened and the same statement may well succeed next time. */
export function isRetryable(error: unknown): boolean {
  return ["40001", "40P01", "55P03", "53300"].includes(code(error));
}

export const isLockTimeout = (error: unknown): boolean => code(error) === "55P03";

/** A history partition is missing (check_violation on a partitioned table). */
export const isMissingPartition = (error: unknown): boolean =>
  code(error) === "23514" &&
  error instanceof Error &&
  /no partition of relation/.test(error.message);

export const isUniqueViolation = (error: unknown): boolean => code(error) === "23505";
