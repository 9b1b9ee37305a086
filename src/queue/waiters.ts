// Takes that wait, first come, first served. Each ends by an item, its time, its signal or the queue's end.

import type { Clock } from "../runtime/clock.ts";
import type { DequeueOptions } from "./queue.ts";

interface Waiter<R> {
  readonly max: number;
  settle(answer: R): void;
}

export class Waiters<R> {
  readonly #waiting = new Set<Waiter<R>>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves with what is served, or with `nothing` when the wait is over. */
  wait(max: number, { timeoutMs = 0, signal }: DequeueOptions, nothing: R): Promise<R> {
    return new Promise((resolve) => {
      const over = new AbortController();
      const waiter: Waiter<R> = {
        max,
        settle: (answer) => {
          this.#waiting.delete(waiter);
          signal?.removeEventListener("abort", giveUp);
          over.abort();
          resolve(answer);
        },
      };
      const giveUp = () => {
        if (this.#waiting.has(waiter)) waiter.settle(nothing);
      };
      this.#waiting.add(waiter);
      signal?.addEventListener("abort", giveUp, { once: true });
      void this.#clock.sleep(timeoutMs, over.signal).then(giveUp);
    });
  }

  /** Serves the one that has waited longest. */
  serve(take: (max: number) => R): void {
    const [waiter] = this.#waiting;
    waiter?.settle(take(waiter.max));
  }

  endAll(nothing: R): void {
    for (const waiter of [...this.#waiting]) waiter.settle(nothing);
  }
}
