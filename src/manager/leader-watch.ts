import type { Clock } from "../runtime/clock.ts";
import type { UpkeepSession } from "../store/store.ts";

const askEveryMs = 1_000;

/** Whether there is no leader, so that workers must stand in. One look at one row a second at most. */
export class LeaderWatch {
  readonly #session: UpkeepSession;
  readonly #clock: Clock;
  #askedAt = Number.NEGATIVE_INFINITY;
  #vacant: Promise<boolean> = Promise.resolve(true);

  constructor(session: UpkeepSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  readonly isVacant = (): Promise<boolean> => {
    const now = this.#clock.monotonic();
    if (now - this.#askedAt >= askEveryMs) {
      this.#askedAt = now;
      this.#vacant = this.#ask();
    }
    return this.#vacant;
  };

  async #ask(): Promise<boolean> {
    try {
      return !(await this.#session.hasLeader());
    } catch (error) {
      this.#askedAt = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }
}
