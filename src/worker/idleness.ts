import type { Clock } from "../runtime/clock.ts";

/** Waits for the moment when nothing is left to do. */
export class Idleness {
  readonly #isIdle: () => boolean;
  readonly #clock: Clock;
  #waiting: (() => void)[] = [];

  constructor(isIdle: () => boolean, clock: Clock) {
    this.#isIdle = isIdle;
    this.#clock = clock;
  }

  /** It may be idle by now. */
  note(): void {
    if (!this.#isIdle()) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async within(ms: number): Promise<void> {
    if (this.#isIdle()) return;
    const idle = new AbortController();
    this.#waiting.push(() => idle.abort());
    await this.#clock.sleep(ms, idle.signal);
  }
}
