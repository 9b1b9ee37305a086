// What takers did with the primary's items while it was away. Told to it first thing when it is back,
// before anybody takes from it again: else it would serve what was done with.

import type { Clock } from "../runtime/clock.ts";
import type { Queue, QueueItem } from "./queue.ts";

type Settle =
  | { readonly do: "ack" }
  | { readonly do: "release"; readonly dueAt: number }
  | { readonly do: "bury"; readonly error: string };

export class OwedSettles<T> {
  readonly #owed = new Map<QueueItem<T>, Settle>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ack(item: QueueItem<T>): void {
    this.#owed.set(item, { do: "ack" });
  }

  release(item: QueueItem<T>, delayMs: number): void {
    this.#owed.set(item, { do: "release", dueAt: this.#clock.monotonic() + delayMs });
  }

  bury(item: QueueItem<T>, error: string): void {
    this.#owed.set(item, { do: "bury", error });
  }

  /** False when the queue is gone again; what was delivered until then is owed no more. */
  async deliver(
    ask: (call: Promise<boolean>) => Promise<{ readonly is: string }>,
    to: Queue<T>,
  ): Promise<boolean> {
    for (const [item, owed] of this.#owed) {
      if ((await ask(this.#call(to, item, owed))).is === "lost") return false;
      this.#owed.delete(item);
    }
    return true;
  }

  #call(to: Queue<T>, item: QueueItem<T>, owed: Settle): Promise<boolean> {
    if (owed.do === "ack") return to.ack(item);
    if (owed.do === "bury") return to.bury(item, owed.error);
    const delayMs = Math.max(0, owed.dueAt - this.#clock.monotonic());
    return to.release(item, { delayMs });
  }
}
