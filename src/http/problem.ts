// Whatever went wrong becomes application/problem+json with a stable code. What is not ours to tell
// (causes, SQL, other tenants' figures) stays inside.

import type { z } from "zod";
import { type ErrorCode, errorCodes, MillraceError } from "../domain/errors.ts";
import { asCoded } from "../store/postgres/failures.ts";
import { statusOf } from "./problem-status.ts";

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly instance: string;
  readonly errors?: readonly { path: string; message: string; code?: string }[];
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Details that may leave, by code; everything else in them is for those inside. */
const tellable: Partial<Record<ErrorCode, readonly string[]>> = {
  IDEMPOTENCY_CONFLICT: ["existingId"],
  UNKNOWN_PRIORITY: ["known"],
  ILLEGAL_TRANSITION: ["state", "status", "reprocessedAs"],
  REFERENCES_NOT_UNIQUE: ["duplicates", "limit"],
  COUNT_MISMATCH: ["count"],
  TENANT_FULL: ["limit", "depth", "capacity", "wanted"],
};

/** Their texts tell of a queue that others may share, or of the server's inside. */
const plainOnly: readonly ErrorCode[] = [
  "QUEUE_FULL",
  "DATABASE_UNAVAILABLE",
  "DATABASE_READ_ONLY",
  "INTERNAL",
];

export function toProblem(error: unknown, instance: string): Problem {
  const known = toMillraceError(error);
  const { code } = known;
  const details = detailsOf(known);
  const errors = errorsOf(known);
  return {
    type: `urn:millrace:problem:${code.toLowerCase().replaceAll("_", "-")}`,
    title: errorCodes[code],
    status: statusOf(code),
    code,
    detail: plainOnly.includes(code) ? errorCodes[code] : known.message,
    instance,
    ...(errors === undefined ? {} : { errors }),
    ...(details === undefined ? {} : { details }),
  };
}

/** After how many seconds it may be worth asking again. */
export function retryAfter(error: unknown): number | undefined {
  const status = statusOf(toMillraceError(error).code);
  if (status !== 429 && status !== 503) return undefined;
  const { retryAfterSeconds, retryAfterMs } = error instanceof MillraceError ? error.details : {};
  const seconds = typeof retryAfterMs === "number" ? retryAfterMs / 1_000 : retryAfterSeconds;
  return typeof seconds === "number" ? Math.max(1, Math.ceil(seconds)) : 1;
}

export function toMillraceError(error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  const coded = asCoded(error);
  if (coded instanceof MillraceError) return coded;
  const code = frameworkCode(error);
  return new MillraceError(code ?? "INTERNAL", undefined, { cause: error });
}

function frameworkCode(error: unknown): ErrorCode | undefined {
  if (typeof error !== "object" || error === null || !("statusCode" in error)) return undefined;
  const { statusCode } = error;
  if (statusCode === 413) return "BODY_TOO_LARGE";
  if (statusCode === 415) return "MEDIA_TYPE_UNSUPPORTED";
  if (typeof statusCode === "number" && statusCode >= 400 && statusCode < 500)
    return "REQUEST_INVALID";
  return undefined;
}

function detailsOf({ code, details }: MillraceError): Record<string, unknown> | undefined {
  const told = (tellable[code] ?? []).filter((name) => details[name] !== undefined);
  if (told.length === 0) return undefined;
  return Object.fromEntries(told.map((name) => [snake(name), details[name]]));
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function errorsOf({ code, details }: MillraceError): Problem["errors"] {
  if (code !== "PAYLOAD_INVALID" && code !== "PAYLOAD_TOO_LARGE" && code !== "REQUEST_INVALID")
    return undefined;
  const { problems } = details;
  if (!Array.isArray(problems)) return undefined;
  return problems.map(({ path, message, code: rule }) => ({
    path: String(path),
    message: String(message),
    ...(rule === undefined ? {} : { code: String(rule) }),
  }));
}

const mostIssues = 20;

/** Names the places, never the values. */
export function requestInvalid(part: string, error: z.ZodError): MillraceError {
  const problems = plainIssues(error.issues)
    .slice(0, mostIssues)
    .map((issue) => ({
      path: [part, ...issue.path.map(String)].join(".").slice(0, 200),
      message: issue.message.slice(0, 500),
    }));
  const first = problems[0];
  return new MillraceError("REQUEST_INVALID", `${first?.path}: ${first?.message}`, {
    details: { problems },
  });
}

/** One place, and what is wrong there. */
export const problemAt = (path: string, message: string, code?: string): MillraceError =>
  new MillraceError("REQUEST_INVALID", `${path}: ${message}`, {
    details: { problems: [{ path, message, ...(code === undefined ? {} : { code }) }] },
  });

/** Of several shapes that were possible, the one that fits best says what is wrong. */
function plainIssues(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  return issues.flatMap((issue) => {
    if (issue.code !== "invalid_union") return [issue];
    const [closest] = [...issue.errors].sort((a, b) => a.length - b.length);
    return closest === undefined || closest.length === 0
      ? [issue]
      : plainIssues(closest).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
  });
}
