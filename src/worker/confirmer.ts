// Tells what a settle has brought about, and lets go of what has ended.

import type { ClaimedJob } from "../domain/job.ts";
import type { RunOutcome } from "../domain/timeline.ts";
import type { Events } from "../runtime/events.ts";
import type { Store } from "../store/store.ts";
import { runningJob } from "./held-jobs.ts";
import type { Ended } from "./settler.ts";

export interface ConfirmerOptions {
  readonly store: Store;
  readonly letGo: (job: ClaimedJob) => void;
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
    const missed = done === null ? [] : ended.filter(({ job }) => !done.has(job.id));
    const stored = missed.length === 0 ? null : await this.#askWhatHappened(missed);
    for (const one of ended) {
      if (stored === null || done?.has(one.job.id)) this.#settled(one);
      else this.#missed(one, stored.get(one.job.id));
    }
    this.#options.settled();
  }

  #askWhatHappened(ended: readonly Ended[]) {
    return this.#options.store.settledOutcomes(
      ended.map(({ job }) => ({ id: job.id, token: job.token })),
    );
  }

  #settled({ job, outcome, durationMs }: Ended): void {
    const { events, letGo } = this.#options;
    letGo(job);
    this.settledCount++;
    if (events.wants("job.settled")) {
      events.emit("job.settled", { ...runningJob(job), outcome, durationMs });
    }
  }

  #missed(one: Ended, stored: RunOutcome | undefined): void {
    const { events, letGo } = this.#options;
    const { job, outcome } = one;
    const event = { ...runningJob(job), outcome: outcome.kind };
    if (stored === outcome.kind) {
      events.emit("job.settle_repeated", event);
      this.#settled(one);
    } else {
      letGo(job);
      events.emit("job.settle_refused", event);
    }
  }
}
