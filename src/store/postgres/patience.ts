import { longestTimerMs } from "../../runtime/clock.ts";

/** Gives up on a server that does not answer. One timer for all queries, since most need none. */
export class Patience {
  readonly #ms: number;
  #giveUp: (() => void) | null = null;
  #startedAt = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(ms: number) {
    this.#ms = Math.min(ms, longestTimerMs);
  }

  start(giveUp: () => void): void {
    this.#giveUp = giveUp;
    this.#startedAt = performance.now();
    if (this.#timer === null) this.#wait(this.#ms);
  }

  end(): void {
    this.#giveUp = null;
  }

  /** It is the connection that keeps the process alive, not this. */
  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#over(), ms).unref();
  }

  /** Of the query that it was started for, or of a later one. */
  #over(): void {
    this.#timer = null;
    if (this.#giveUp === null) return;
    const leftMs = this.#startedAt + this.#ms - performance.now();
    if (leftMs > 0) this.#wait(leftMs);
    else this.#giveUp();
  }
}
