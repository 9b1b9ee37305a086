// What this process knows of one breaker. A copy is as old as the request that brought it, and it is
// given up after half a cool-down at the latest: so nobody who believes it closed calls while it is
// half open. Times in it are this process's own, counted from durations.

import type { CircuitBreaker } from "../domain/circuit-breaker.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Breaker, BreakerStore } from "../store/breaker.ts";

export interface BreakerCopyOptions {
  readonly name: string;
  readonly store: BreakerStore;
  /** Every request goes through it: from a stop on they are refused. */
  readonly track: <T>(request: () => Promise<T>) => Promise<T>;
  readonly clock: Clock;
  readonly events: Events;
}

const longestAgeMs = 5_000;
/** How long a caller waits for PostgreSQL, and how long it is left alone after it did not answer. */
export const patienceMs = 3_000;
/** So long after failures were seen on the count, more of them may be there. */
const latelyMs = 1_000;

export class BreakerCopy {
  readonly #options: BreakerCopyOptions;
  #stored: Breaker | null = null;
  #machine: CircuitBreaker | null = null;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #silentUntilMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<boolean> | null = null;
  #isOutdated = false;
  #failuresSeenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: BreakerCopyOptions) {
    this.#options = options;
  }

  /** However old it is; null: never seen. */
  get last(): { readonly stored: Breaker; readonly machine: CircuitBreaker } | null {
    if (this.#stored === null || this.#machine === null) return null;
    return { stored: this.#stored, machine: this.#machine };
  }

  get isReading(): boolean {
    return this.#reading !== null;
  }

  /** Failures are on the count, were a moment ago, or nobody knows. */
  get hasFailedLately(): boolean {
    if (this.#machine === null || this.#machine.failures > 0) return true;
    return this.#options.clock.monotonic() - this.#failuresSeenAtMs < latelyMs;
  }

  /** The same while it may be believed. One that is no longer new is read again meanwhile. */
  current(): BreakerCopy["last"] {
    const { last } = this;
    if (last === null) return null;
    const ageMs = this.#options.clock.monotonic() - this.#askedAtMs;
    const mostMs = Math.min(longestAgeMs, last.stored.openCooldownSeconds * 500);
    if (ageMs > mostMs / 5) void this.read();
    return ageMs > mostMs ? null : last;
  }

  /** Calls that come together are answered together. False: PostgreSQL did not answer in time. */
  read(): Promise<boolean> {
    const { name, store } = this.#options;
    this.#reading ??= this.ask(() => store.ensure(name)).then((answer) => {
      this.#reading = null;
      if (this.#isOutdated) {
        this.#isOutdated = false;
        void this.read();
      }
      return answer !== null;
    });
    return this.#reading;
  }

  /** Somebody has changed it; what is being read may be from before that. */
  hear(id: number): void {
    if (this.#stored?.id !== id) return;
    if (this.#reading === null) void this.read();
    else this.#isOutdated = true;
  }

  /** Never throws: null when PostgreSQL refuses, is silent, or was silent a moment ago. */
  async ask(request: () => Promise<Breaker>): Promise<Breaker | null> {
    const { clock, events, track } = this.#options;
    const askedAtMs = clock.monotonic();
    if (askedAtMs < this.#silentUntilMs) return null;
    const patience = new AbortController();
    const answer = track(request).then(
      (breaker) => this.#take(breaker, askedAtMs),
      (error: unknown) => {
        this.#silentUntilMs = clock.monotonic() + patienceMs;
        events.emit("service.failed", { service: "breaker", error });
        return null;
      },
    );
    const late = clock.sleep(patienceMs, patience.signal).then(() => {
      if (!patience.signal.aborted) this.#silentUntilMs = clock.monotonic() + patienceMs;
      return null;
    });
    const first = await Promise.race([answer, late]);
    patience.abort();
    return first;
  }

  #take(breaker: Breaker, askedAtMs: number): Breaker {
    const before = this.#stored;
    const isOld =
      before !== null &&
      (breaker.period < before.period ||
        (breaker.period === before.period && askedAtMs < this.#askedAtMs));
    if (isOld) return breaker;
    this.#stored = breaker;
    this.#machine = toMachine(breaker, this.#options.clock.monotonic());
    this.#askedAtMs = askedAtMs;
    if (
      breaker.failures > 0 ||
      before?.lastFailureAt?.getTime() !== breaker.lastFailureAt?.getTime()
    )
      this.#failuresSeenAtMs = this.#options.clock.monotonic();
    if (before !== null && before.state !== breaker.state) this.#tell(breaker);
    return breaker;
  }

  #tell({ name, state, cause, reason, failures, retryAfterMs }: Breaker): void {
    const { events } = this.#options;
    const change = { breaker: name, cause, reason };
    if (state === "OPEN") events.emit("breaker.opened", { ...change, failures, retryAfterMs });
    else if (state === "HALF_OPEN") events.emit("breaker.half_opened", change);
    else events.emit("breaker.closed", change);
  }
}

const toMachine = (breaker: Breaker, now: number): CircuitBreaker => ({
  state: breaker.state,
  period: breaker.period,
  failures: breaker.failures,
  retryAtMs: breaker.retryAfterMs === null ? null : now + breaker.retryAfterMs,
  probes: breaker.probes.map(({ id, leftMs }) => ({ id, untilMs: now + leftMs })),
});
