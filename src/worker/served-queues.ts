// Which of a worker's queues are plain and which are controlled. A notice tells of a change at once; who
// missed it reads it within a few seconds.

import type { Clock } from "../runtime/clock.ts";
import type { Queue } from "../store/store.ts";

export interface ServedQueuesOptions {
  readonly read: () => Promise<readonly Pick<Queue, "id" | "controlled">[]>;
  readonly apply: (plain: readonly number[], controlled: readonly number[]) => void;
  readonly clock: Clock;
}

const freshMs = 5_000;

export class ServedQueues {
  readonly #options: ServedQueuesOptions;
  #readAt: number;
  #reading = false;
  #again = false;
  #known = "";
  #reads = 0;
  #applied = 0;

  constructor(options: ServedQueuesOptions) {
    this.#options = options;
    this.#readAt = options.clock.monotonic();
  }

  serve(queues: readonly Pick<Queue, "id" | "controlled">[]): void {
    const plain = queues.filter(({ controlled }) => !controlled).map(({ id }) => id);
    const controlled = queues.filter((queue) => queue.controlled).map(({ id }) => id);
    const known = `${plain}/${controlled}`;
    if (known === this.#known) return;
    this.#known = known;
    this.#options.apply(plain, controlled);
  }

  /** Resolves when they are served as they are now. */
  async reread(): Promise<void> {
    const turn = ++this.#reads;
    this.#readAt = this.#options.clock.monotonic();
    this.#apply(turn, await this.#options.read());
  }

  /** An answer that comes late must not undo a later one. */
  #apply(turn: number, queues: readonly Pick<Queue, "id" | "controlled">[]): void {
    if (turn < this.#applied) return;
    this.#applied = turn;
    this.serve(queues);
  }

  refreshIfDue(): void {
    if (this.#options.clock.monotonic() - this.#readAt >= freshMs) this.refresh();
  }

  /** Nobody waits for it, and what fails is tried again later. */
  refresh(): void {
    this.#again = this.#reading;
    if (this.#reading) return;
    this.#reading = true;
    this.reread()
      .catch(() => {})
      .finally(() => {
        this.#reading = false;
        if (this.#again) this.refresh();
      });
  }
}
