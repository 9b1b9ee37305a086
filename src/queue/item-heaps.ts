// What waits, by its sequence: the ready by weight and sequence, the scheduled by due time. Among those
// due at one moment the order does not matter here: they are ready together, and the other heap decides.

import type { Clock } from "../runtime/clock.ts";
import { KeyHeap } from "./key-heap.ts";

const sequences = 2 ** 45;

export class ItemHeaps {
  readonly #clock: Clock;
  /** Weight and sequence make one key: 201 weights and 2^45 sequences fit into a double's 53 bits. */
  readonly #ready = new KeyHeap();
  /** By the monotonic clock: a change of the wall clock moves no due time. */
  readonly #scheduled = new KeyHeap();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get ready(): number {
    return this.#ready.size;
  }

  get scheduled(): number {
    return this.#scheduled.size;
  }

  get depth(): number {
    return this.#ready.size + this.#scheduled.size;
  }

  /** Infinity when nothing is scheduled. */
  get nextDueAt(): number {
    return this.#scheduled.firstKey;
  }

  push(weight: number, sequence: number, delayMs: number): void {
    const key = (weight + 100) * sequences + sequence;
    if (delayMs === 0) this.#ready.push(key, sequence);
    else this.#scheduled.push(this.#clock.monotonic() + delayMs, key);
  }

  /** Makes ready what is due. */
  promote(): void {
    if (this.#scheduled.size === 0) return;
    const now = this.#clock.monotonic();
    while (this.#scheduled.firstKey <= now) {
      const key = this.#scheduled.pop();
      this.#ready.push(key, key % sequences);
    }
  }

  popReady(): number {
    return this.#ready.pop();
  }

  /** The next to fall due, though it is not due yet. */
  popScheduled(): number {
    return this.#scheduled.pop() % sequences;
  }
}
