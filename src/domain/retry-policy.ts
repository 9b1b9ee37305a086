import type { ErrorClass, Failure } from "./error-class.ts";

/** Milliseconds until the next start. `failures` counts from 1; `random` is in [0, 1). */
export type RetryPolicy = (failure: Failure, failures: number, random: number) => number;

export interface BackoffOptions {
  readonly baseMs?: Partial<Record<ErrorClass, number>>;
  readonly capMs?: number;
  readonly jitter?: number;
}

const defaultBaseMs: Record<ErrorClass, number> = {
  transient: 2_000,
  retryable: 2_000,
  rate_limited: 60_000,
  non_retryable: 0,
};

/** Doubles from the class's base, capped, spread by ± jitter; a platform's own wish wins, capped too. */
export function exponentialBackoff(options: BackoffOptions = {}): RetryPolicy {
  const baseMs = { ...defaultBaseMs, ...options.baseMs };
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
