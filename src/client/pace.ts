// How fast a stream of jobs may come for one worker that takes them straight from their flushes. What it is given
// beyond its room is stored as ready, and then all that follows has to be claimed, which costs more for as long as it
// lasts. So a producer that is about to outrun it waits a moment. See docs/design/handover.md.

import type { Seen } from "../store/store.ts";

/** Nobody waits longer for one flush: who is further behind takes jobs as others do. */
export const mostWaitMs = 20;
/** Newer measurements count for so much. */
const share = 0.3;

export class Pace {
  #held = 0;
  #at = 0;
  /** Jobs that the worker settles in a millisecond; 0: it is not known. */
  #rate = 0;
  #resumesAt = 0;

  /** It took so many more. */
  took(jobs: number, { held }: Seen, now: number): void {
    const settled = this.#held - (held - jobs);
    const elapsed = now - this.#at;
    if (settled >= 0 && elapsed > 0 && this.#held > 0) {
      const rate = settled / elapsed;
      this.#rate = this.#rate === 0 ? rate : this.#rate + share * (rate - this.#rate);
    }
    this.#held = held;
    this.#at = now;
    this.#resumesAt = 0;
  }

  /** It did not; true: it has only just fallen behind, and is worth waiting for. */
  refused({ behindMs }: Seen, now: number): boolean {
    this.#held = 0;
    const isNear = behindMs === null || behindMs <= mostWaitMs;
    // What was refused is ready by now, and has to be taken first.
    this.#resumesAt = isNear ? now + (behindMs ?? mostWaitMs / 2) : 0;
    return isNear;
  }

  /** How long to wait before it is given so many more, of which it may have `most`. */
  waitMs(jobs: number, most: number, now: number): number {
    const excess = this.#held - this.#rate * (now - this.#at) + jobs - most;
    const forRoom = excess <= 0 ? 0 : this.#rate === 0 ? mostWaitMs : excess / this.#rate;
    return Math.min(mostWaitMs, Math.max(forRoom, this.#resumesAt - now, 0));
  }
}
