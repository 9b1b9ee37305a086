// How often a key may call, and how often an address may guess.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";

interface Bucket {
  tokens: number;
  at: number;
}

const mostBuckets = 10_000;

/** So many per second, and as many again in one go. */
export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Seconds to wait; 0: go ahead. */
  take(who: string, perSecond: number, burst = 2 * perSecond): number {
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(who) ?? { tokens: burst, at: now };
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1_000) * perSecond);
    bucket.at = now;
    if (!this.#buckets.has(who) && this.#buckets.size >= mostBuckets) this.#buckets.clear();
    this.#buckets.set(who, bucket);
    if (bucket.tokens < 1) return (1 - bucket.tokens) / perSecond;
    bucket.tokens -= 1;
    return 0;
  }

  /** The same, without taking anything. */
  peek(who: string, perSecond: number, burst: number): number {
    const bucket = this.#buckets.get(who);
    if (bucket === undefined) return 0;
    const now = this.#clock.monotonic();
    const tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1_000) * perSecond);
    return tokens < 1 ? (1 - tokens) / perSecond : 0;
  }
}

export function rateLimited(seconds: number): MillraceError {
  const wait = Math.max(1, Math.ceil(seconds));
  return new MillraceError("RATE_LIMITED", `Too many requests; try again in ${wait} s.`, {
    details: { retryAfterSeconds: wait },
  });
}
