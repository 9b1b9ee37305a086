import { checkOptions, type Known, knownNames } from "./check-options.ts";
import type { ErrorClass, Failure } from "./error-class.ts";
import { errorClasses } from "./error-class.ts";
import { MillraceError } from "./errors.ts";

/** Milliseconds until the next start. `failures` counts from 1; `random` is in [0, 1). */
export type RetryPolicy = (failure: Failure, failures: number, random: number) => number;

export interface BackoffOptions {
  /** By class; one number is for all that are tried again. */
  readonly baseMs?: number | Partial<Record<ErrorClass, number>>;
  readonly capMs?: number;
  readonly jitter?: number;
}

const defaultBaseMs: Record<ErrorClass, number> = {
  transient: 2_000,
  retryable: 2_000,
  rate_limited: 60_000,
  non_retryable: 0,
};

const known = knownNames({
  baseMs: true,
  capMs: true,
  jitter: true,
} satisfies Known<BackoffOptions>);
const classes: ReadonlySet<string> = new Set(errorClasses);

const basesOf = (base: BackoffOptions["baseMs"]): Partial<Record<ErrorClass, number>> =>
  typeof base === "number"
    ? { transient: base, retryable: base, rate_limited: base }
    : (base ?? {});

function checkBackoff(options: BackoffOptions): void {
  checkOptions("retry", options, known);
  const { baseMs, capMs, jitter } = options;
  if (baseMs !== undefined && typeof baseMs !== "number")
    checkOptions("retry.baseMs", baseMs, classes);
  const waits = { ...basesOf(baseMs), ...(capMs === undefined ? {} : { capMs }) };
  for (const [name, ms] of Object.entries(waits)) {
    if (ms === undefined || (typeof ms === "number" && ms >= 0)) continue;
    throw new MillraceError("OPTION_INVALID", `retry: ${name} must be a number from 0 on.`);
  }
  if (jitter === undefined || (typeof jitter === "number" && jitter >= 0 && jitter <= 1)) return;
  throw new MillraceError("OPTION_INVALID", "retry: jitter must be a number from 0 to 1.");
}

/** Doubles from the class's base, capped, spread by ± jitter; a platform's own wish wins, capped too. */
export function exponentialBackoff(options: BackoffOptions = {}): RetryPolicy {
  checkBackoff(options);
  const baseMs = { ...defaultBaseMs, ...basesOf(options.baseMs) };
  const capMs = options.capMs ?? 300_000;
  const jitter = options.jitter ?? 0.2;
  return (failure, failures, random) => {
    if (failure.retryAfterMs !== undefined)
      return Math.min(capMs, Math.max(0, failure.retryAfterMs));
    const doubled = baseMs[failure.class] * 2 ** Math.min(Math.max(failures, 1) - 1, 30);
    const spread = Math.min(doubled, capMs) * (1 + jitter * (2 * random - 1));
    return Math.round(Math.min(spread, capMs));
  };
}

export const defaultRetryPolicy = exponentialBackoff();

/** Throws when the policy answers with what is no finite number: a promise, a text, nothing. */
export function waitBy(
  policy: RetryPolicy,
  failure: Failure,
  failures: number,
  random: number,
): number {
  const ms: unknown = policy(failure, failures, random);
  if (typeof ms === "number" && Number.isFinite(ms)) return ms;
  // Nobody will look at how an async policy fails.
  if (typeof ms === "object" && ms !== null && "then" in ms) Promise.resolve(ms).catch(() => {});
  throw new MillraceError(
    "OPTION_INVALID",
    "A retry policy must return milliseconds, a finite number.",
  );
}
