// Hours in seconds: time stands still while anybody waits for a server, then jumps to the next moment
// at which something wants to happen. Servers keep their own time, so what expires there is aged.

import type { Clock } from "../../src/runtime/clock.ts";

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** One process's view of the time: while it is stopped, nothing of it wakes up. */
export class SimulatedClock implements Clock {
  readonly #time: SimulatedTime;
  readonly sleepers = new Set<Sleeper>();
  stopped = false;

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  now(): Date {
    return new Date(this.monotonic());
  }

  monotonic(): number {
    return this.#time.now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const sleeper: Sleeper = {
        at: this.#time.now + Math.max(0, ms),
        wake: () => {
          this.sleepers.delete(sleeper);
          signal?.removeEventListener("abort", sleeper.wake);
          resolve();
        },
      };
      this.sleepers.add(sleeper);
      signal?.addEventListener("abort", sleeper.wake, { once: true });
    });
  }
}

export class SimulatedTime {
  now = 0;
  #waiting = 0;
  readonly #clocks: SimulatedClock[] = [];
  readonly #age: (ms: number) => Promise<unknown>;

  /** `age` lets so much time pass for what the servers keep. */
  constructor(age: (ms: number) => Promise<unknown>) {
    this.#age = age;
  }

  clock(): SimulatedClock {
    const clock = new SimulatedClock(this);
    this.#clocks.push(clock);
    return clock;
  }

  /** Time stands still until the answer is there. */
  async hold<T>(answer: Promise<T>): Promise<T> {
    this.#waiting++;
    try {
      return await answer;
    } finally {
      this.#waiting--;
    }
  }

  /** To the next moment at which somebody wakes up, or to the limit. */
  async step(limit: number): Promise<void> {
    await this.quiet();
    const running = this.#clocks.filter((clock) => !clock.stopped);
    const sleepers = running.flatMap((clock) => [...clock.sleepers]);
    const next = Math.min(limit, ...sleepers.map(({ at }) => at));
    const ms = Math.ceil(Math.max(0, next - this.now));
    if (ms > 0) await this.#age(ms);
    this.now += ms;
    for (const sleeper of sleepers) if (sleeper.at <= this.now) sleeper.wake();
    await this.quiet();
  }

  /** Until nobody waits for a server, and what an answer set in motion has come to rest. */
  async quiet(): Promise<void> {
    for (let calm = 0; calm < 3; calm = this.#waiting === 0 ? calm + 1 : 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
