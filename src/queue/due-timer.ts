import type { Clock } from "../runtime/clock.ts";

/** One timer, for the next moment something is due by the monotonic clock. */
export class DueTimer {
  readonly #clock: Clock;
  readonly #fire: () => void;
  #set: { readonly dueAt: number; readonly cancel: AbortController } | undefined;

  constructor(clock: Clock, fire: () => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** Infinity: none. */
  setTo(dueAt: number): void {
    if (this.#set?.dueAt === dueAt) return;
    this.#set?.cancel.abort();
    this.#set = undefined;
    if (dueAt === Number.POSITIVE_INFINITY) return;
    const timer = { dueAt, cancel: new AbortController() };
    this.#set = timer;
    const ms = Math.max(0, Math.ceil(dueAt - this.#clock.monotonic()));
    void this.#clock.sleep(ms, timer.cancel.signal).then(() => {
      if (this.#set !== timer) return;
      this.#set = undefined;
      this.#fire();
    });
  }
}
