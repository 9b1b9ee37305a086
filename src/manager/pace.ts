import type { Clock } from "../runtime/clock.ts";

/** Says "now" once in so many milliseconds: first after that time, or at once. */
export class Pace {
  readonly #everyMs: number;
  readonly #clock: Clock;
  #last: number;

  constructor(everyMs: number, clock: Clock, first: "later" | "at once" = "later") {
    this.#everyMs = everyMs;
    this.#clock = clock;
    this.#last = first === "later" ? clock.monotonic() : Number.NEGATIVE_INFINITY;
  }

  isDue(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#last < this.#everyMs) return false;
    this.#last = now;
    return true;
  }
}
