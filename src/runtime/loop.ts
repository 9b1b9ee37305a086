import type { Clock } from "./clock.ts";
import type { Events } from "./events.ts";
import type { Service } from "./service.ts";
import { WakeUp } from "./wake-up.ts";

export interface LoopReport {
  readonly name: string;
  readonly lastRunAt: Date | null;
  readonly lastDurationMs: number;
  readonly processed: number;
  readonly errors: number;
}

export interface LoopOptions {
  readonly name: string;
  readonly intervalMs: number;
  /** How soon to try again after an error; the interval when left out. */
  readonly retryMs?: number;
  /** Does one round and says how much it did, and when at the latest it wants to run again. */
  readonly run: () => Promise<{ processed: number; nextMs?: number }>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

/** A service that does a round, sleeps a jittered while, and can be woken early. */
export class Loop implements Service {
  readonly name: string;
  readonly #options: LoopOptions;
  readonly #wakeUp = new WakeUp();
  #state: "stopped" | "running" | "stopping" = "stopped";
  #done: Promise<void> = Promise.resolve();
  #report: LoopReport;

  constructor(options: LoopOptions) {
    this.name = options.name;
    this.#options = options;
    this.#report = {
      name: options.name,
      lastRunAt: null,
      lastDurationMs: 0,
      processed: 0,
      errors: 0,
    };
  }

  get report(): LoopReport {
    return this.#report;
  }

  async start(): Promise<void> {
    if (this.#state !== "stopped") return;
    this.#state = "running";
    this.#done = this.#rounds();
  }

  async stop(): Promise<void> {
    if (this.#state === "running") this.#state = "stopping";
    this.wake();
    await this.#done;
    this.#state = "stopped";
  }

  wake(): void {
    this.#wakeUp.wake();
  }

  async #rounds(): Promise<void> {
    const { random, intervalMs } = this.#options;
    while (this.#state === "running") {
      const wanted = await this.#round();
      const pause = Math.min(wanted ?? intervalMs, intervalMs * (0.9 + 0.2 * random()));
      if (this.#state === "running") await this.#wakeUp.sleep(pause);
    }
  }

  async #round(): Promise<number | undefined> {
    const { clock, events } = this.#options;
    const started = clock.monotonic();
    const before = this.#report;
    try {
      const { processed, nextMs } = await this.#options.run();
      this.#note(started, before.processed + processed, before.errors);
      return nextMs;
    } catch (error) {
      this.#note(started, before.processed, before.errors + 1);
      events.emit("service.failed", { service: this.name, error });
      return this.#options.retryMs;
    }
  }

  #note(started: number, processed: number, errors: number): void {
    const { clock } = this.#options;
    this.#report = {
      name: this.name,
      lastRunAt: clock.now(),
      lastDurationMs: clock.monotonic() - started,
      processed,
      errors,
    };
  }
}
