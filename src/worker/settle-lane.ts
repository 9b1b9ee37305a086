// While there is a backlog, completions leave over a connection of their own: the server then settles one
// batch while it claims the next. Otherwise both halves share a statement, which costs less in all.
//
// An error leaves the outcome unknown. The completions go back to the settler, and the next turn takes
// them along: a repeat is recognised by its token.

import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { WorkerSession } from "../store/store.ts";
import type { HeldJobs } from "./held-jobs.ts";
import { type Ended, type Settler, toCompletion } from "./settler.ts";

export interface SettleLaneOptions {
  /** Connects when it is first used. */
  readonly session: WorkerSession;
  readonly worker: string;
  readonly settler: Settler;
  readonly held: HeldJobs;
  readonly confirm: (ended: readonly Ended[], done: ReadonlySet<string> | null) => Promise<void>;
  /** A batch is through, or it has come to rest: what ends from then on is the turns' again. */
  readonly onSettled: () => void;
  readonly clock: Clock;
  readonly events: Events;
}

/** Fewer are not worth a second statement. */
const fewest = 100;
const most = 1_000;
/** With so many unsettled, nothing more is claimed. */
const tooMany = 3_000;
const pauseAfterErrorMs = 1_000;

export class SettleLane {
  readonly #options: SettleLaneOptions;
  /** Counts are rows per process and minute; with rows of its own the lane waits for nobody. */
  readonly #process = randomUUID();
  #working: Promise<void> | null = null;
  #allowedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SettleLaneOptions) {
    this.#options = options;
  }

  /** Resolves when it has come to rest; null while it rests. */
  get working(): Promise<void> | null {
    return this.#working;
  }

  get isBehind(): boolean {
    return this.#working !== null && this.#options.settler.pendingCompletions > tooMany;
  }

  /** Takes over what has been completed, and what will be while it is at it. */
  startIfWorthwhile(): void {
    const { settler, clock, onSettled } = this.#options;
    if (this.#working !== null || settler.pendingCompletions < fewest) return;
    if (clock.monotonic() < this.#allowedAt) return;
    this.#working = this.#work().finally(() => {
      this.#working = null;
      onSettled();
    });
  }

  async close(): Promise<void> {
    await this.#options.session.close();
  }

  async #work(): Promise<void> {
    const { settler, clock, events } = this.#options;
    while (settler.pendingCompletions >= fewest) {
      const ended = settler.takeCompletions(most);
      try {
        await this.#settle(ended);
      } catch (error) {
        settler.putBack(ended);
        this.#allowedAt = clock.monotonic() + pauseAfterErrorMs;
        events.emit("service.failed", { service: "worker", error });
        return;
      }
    }
  }

  async #settle(ended: readonly Ended[]): Promise<void> {
    const { session, worker, held, confirm, onSettled } = this.#options;
    const turned = await session.turn({
      worker,
      process: this.#process,
      completions: ended.map(toCompletion),
      finishedClaims: held.takeFinishedClaims(),
      claim: null,
    });
    await confirm(ended, turned.completed);
    onSettled();
  }
}
