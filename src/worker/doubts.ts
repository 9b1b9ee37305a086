// Runs that began with a flush of which nobody could find out what became of it. The server may commit it yet, late:
// then the run is its job's own, and its end is stored. So the job is looked for, for a while.

import type { Clock } from "../runtime/clock.ts";
import type { Store } from "../store/store.ts";
import type { HeldJob } from "./held-jobs.ts";

export interface DoubtsOptions {
  readonly store: Pick<Store, "find">;
  readonly stored: (held: HeldJob) => void;
  readonly lost: (held: HeldJob) => void;
  readonly clock: Clock;
}

interface Doubt {
  readonly held: HeldJob;
  readonly until: number;
}

const everyMs = 1_000;
const longestMs = 600_000;

export class Doubts {
  readonly #options: DoubtsOptions;
  #all: Doubt[] = [];
  #looking = false;
  readonly #closing = new AbortController();

  constructor(options: DoubtsOptions) {
    this.#options = options;
  }

  add(held: HeldJob): void {
    this.#all.push({ held, until: this.#options.clock.monotonic() + longestMs });
    if (!this.#looking) void this.#look();
  }

  /** Nobody looks any more: they count as lost. */
  close(): void {
    this.#closing.abort();
  }

  async #look(): Promise<void> {
    const { store, stored, lost, clock } = this.#options;
    const { signal } = this.#closing;
    this.#looking = true;
    while (this.#all.length > 0) {
      await clock.sleep(everyMs, signal);
      const ids = this.#all.map(({ held }) => held.job.id);
      // Whoever cannot be asked now is asked again.
      const jobs = signal.aborted ? [] : await store.find(ids).catch(() => []);
      const found = new Set(jobs.map(({ id }) => id));
      const now = signal.aborted ? Number.POSITIVE_INFINITY : clock.monotonic();
      const all = this.#all;
      this.#all = all.filter(({ held, until }) => !found.has(held.job.id) && now < until);
      for (const doubt of all) {
        if (found.has(doubt.held.job.id)) stored(doubt.held);
        else if (now >= doubt.until) lost(doubt.held);
      }
    }
    this.#looking = false;
  }
}
