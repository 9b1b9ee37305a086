// Every failure has one class, and the class alone decides whether and when the job runs again.

import { MillraceError } from "./errors.ts";

export const errorClasses = ["transient", "retryable", "rate_limited", "non_retryable"] as const;
export type ErrorClass = (typeof errorClasses)[number];

/** A failure as it is stored: bounded, and groupable by its fingerprint. */
export interface JobError {
  readonly class: ErrorClass;
  readonly fingerprint: string;
  readonly message: string;
  readonly stack?: string;
}

export interface Failure {
  readonly class: ErrorClass;
  /** The platform's own wish, for instance a Retry-After header. */
  readonly retryAfterMs?: number;
}

/**
 * How our own errors are known. Not by `instanceof`: a handler may come with another copy of this package,
 * as when a loader compiles its imports to require().
 */
export const thrownKind: unique symbol = Symbol.for("millrace.thrown") as never;
type ThrownKind = "failure" | "snooze" | "breaker_open";

export function isThrown(error: unknown, kind: ThrownKind): boolean {
  if (typeof error !== "object" || error === null) return false;
  return (error as { readonly [thrownKind]?: unknown })[thrownKind] === kind;
}

const isJobFailure = (error: unknown): error is JobFailure => isThrown(error, "failure");
export const isSnooze = (error: unknown): error is Snooze => isThrown(error, "snooze");

/** Throw one of these from a handler to say what kind of failure it was. */
export class JobFailure extends Error {
  readonly class: ErrorClass;
  readonly retryAfterMs: number | undefined;

  constructor(
    errorClass: ErrorClass,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number } = {},
  ) {
    // null is as good as none: what went wrong must not be hidden by how it is told.
    const { cause, retryAfterMs } = options ?? {};
    super(message, cause === undefined ? {} : { cause });
    this.name = "JobFailure";
    this.class = errorClass;
    this.retryAfterMs = waitOf(retryAfterMs);
  }

  get [thrownKind](): ThrownKind {
    return "failure";
  }
}

export class NonRetryableError extends JobFailure {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("non_retryable", message, options);
    this.name = "NonRetryableError";
  }
}

export class RetryableError extends JobFailure {
  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super("retryable", message, options);
    this.name = "RetryableError";
  }
}

export class RateLimitedError extends JobFailure {
  constructor(message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super("rate_limited", message, options);
    this.name = "RateLimitedError";
  }
}

/** A wait that is none (a header that was not a number) is no wish: the class's usual wait applies. */
const waitOf = (ms: unknown): number | undefined => (isWait(ms) ? ms : undefined);

const isWait = (ms: unknown): ms is number =>
  typeof ms === "number" && Number.isFinite(ms) && ms >= 0;

/** Throw this to wait without spending an attempt. */
export class Snooze extends Error {
  readonly delayMs: number;

  constructor(delayMs: number, reason = "snoozed") {
    super(reason);
    if (!isWait(delayMs)) {
      const message = "A Snooze takes the milliseconds to wait: a finite number from 0 on.";
      throw new MillraceError("OPTION_INVALID", message);
    }
    this.name = "Snooze";
    this.delayMs = delayMs;
  }

  get [thrownKind](): ThrownKind {
    return "snooze";
  }
}

export type Classifier = (error: unknown) => Failure | ErrorClass | undefined;

/** Throws what the classifier throws, and when it answers with none of these. */
export function classify(error: unknown, classifier?: Classifier): Failure {
  const own: unknown = classifier?.(error);
  if (own !== undefined) return failureOf(own);
  if (isJobFailure(error) && isErrorClass(error.class))
    return failure(error.class, error.retryAfterMs);
  return { class: isNetworkError(error) ? "transient" : "retryable" };
}

function failureOf(answer: unknown): Failure {
  if (isErrorClass(answer)) return { class: answer };
  if (typeof answer === "object" && answer !== null) {
    if ("class" in answer && isErrorClass(answer.class))
      return failure(answer.class, "retryAfterMs" in answer ? answer.retryAfterMs : undefined);
    // Nobody will look at what an async classifier answers, nor at how it fails.
    if ("then" in answer) Promise.resolve(answer).catch(() => {});
  }
  const message = `classify must return undefined, an error class (${errorClasses.join(", ")}) or { class, retryAfterMs }, and not a promise.`;
  throw new MillraceError("OPTION_INVALID", message);
}

function failure(errorClass: ErrorClass, wish: unknown): Failure {
  const retryAfterMs = waitOf(wish);
  return retryAfterMs === undefined ? { class: errorClass } : { class: errorClass, retryAfterMs };
}

const isErrorClass = (value: unknown): value is ErrorClass =>
  (errorClasses as readonly unknown[]).includes(value);

const networkCodes = new Set([
  "ECONNRESET",
  "ECONNREFUSED",
  "ETIMEDOUT",
  "EPIPE",
  "EAI_AGAIN",
  "ENETUNREACH",
  "EHOSTUNREACH",
]);

function isNetworkError(error: unknown): boolean {
  if (typeof error !== "object" || error === null || !("code" in error)) return false;
  return typeof error.code === "string" && networkCodes.has(error.code);
}
