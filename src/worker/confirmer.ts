// Tells what a settle has brought about, and lets go of what has ended.

import type { RunOutcome } from "../domain/timeline.ts";
import type { Events } from "../runtime/events.ts";
import type { Store } from "../store/store.ts";
import { type HeldJob, runningJob } from "./held-jobs.ts";
import type { Ended } from "./settler.ts";

export interface ConfirmerOptions {
  readonly store: Store;
  readonly letGo: (held: HeldJob) => void;
  readonly settled: () => void;
  readonly events: Events;
}

export class Confirmer {
  readonly #options: ConfirmerOptions;
  settledCount = 0;

  constructor(options: ConfirmerOptions) {
    this.#options = options;
  }

  /** `done` are those that took effect, null for all. What did not was a repeat, moved, or is superseded. */
  async confirm(ended: readonly Ended[], done: { has(id: string): boolean } | null): Promise<void> {
    const missed = done === null ? [] : ended.filter(({ held }) => !done.has(held.job.id));
    const stored = missed.length === 0 ? null : await this.#askWhatHappened(missed);
    for (const one of ended) {
      if (stored === null || done?.has(one.held.job.id)) this.#settled(one);
      else this.#missed(one, stored.get(one.held.job.id));
    }
    this.#options.settled();
  }

  #askWhatHappened(ended: readonly Ended[]) {
    return this.#options.store.settledOutcomes(
      ended.map(({ held: { job } }) => ({ id: job.id, token: job.token })),
    );
  }

  #settled({ held, outcome, durationMs }: Ended): void {
    const { events, letGo } = this.#options;
    letGo(held);
    this.settledCount++;
    if (events.wants("job.settled")) {
      events.emit("job.settled", { ...runningJob(held.job), outcome, durationMs });
    }
  }

  #missed(one: Ended, stored: RunOutcome | undefined): void {
    const { events, letGo } = this.#options;
    const { held, outcome } = one;
    const event = { ...runningJob(held.job), outcome: outcome.kind };
    if (stored === outcome.kind) {
      events.emit("job.settle_repeated", event);
      this.#settled(one);
    } else {
      letGo(held);
      events.emit("job.settle_refused", event);
    }
  }
}
