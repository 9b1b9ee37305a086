import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "../../src/runtime/clock.ts";

interface Sleeper {
  readonly at: number;
  readonly wake: () => void;
}

/** A clock that stands still until the test moves it. */
export class ManualClock implements Clock {
  #ms = 1_700_000_000_000;
  readonly #sleepers = new Set<Sleeper>();

  now(): Date {
    return new Date(this.#ms);
  }

  monotonic(): number {
    return this.#ms;
  }

  get sleeping(): number {
    return this.#sleepers.size;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper = { at: this.#ms + ms, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** Passes through every moment at which somebody wakes, and lets each do what it will. */
  async advance(ms: number): Promise<void> {
    await settle();
    const end = this.#ms + ms;
    for (;;) {
      const next = [...this.#sleepers].sort((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.#ms = Math.max(this.#ms, next.at);
      next.wake();
      await settle();
    }
    this.#ms = end;
    await settle();
  }
}

/** Lets everything that is only waiting for its turn run. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await turn();
}
