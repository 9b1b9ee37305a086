// The hints a worker has taken and not yet claimed. While there are plenty, the next ones are taken while
// the last turn is under way.

import type { Place } from "../domain/job.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { ClaimHint, ReadyPlace, Store } from "../store/store.ts";
import type { HeldJob } from "./held-jobs.ts";

export interface HintSource {
  readonly isActive: boolean;
  /** `from`: up to where this worker has claimed. */
  take(
    queueIds: readonly number[],
    most: number,
    from: readonly ClaimHint[],
  ): Promise<ReadyPlace[]>;
  /** Answers those it could not take. */
  put(places: readonly ReadyPlace[]): Promise<readonly ReadyPlace[]>;
}

export interface HintBufferOptions {
  readonly source: HintSource;
  readonly queueIds: () => readonly number[];
  readonly from: () => readonly ClaimHint[];
  readonly store: Pick<Store, "foreignPlaces">;
  readonly clock: Clock;
  readonly events: Events;
}

const avoidMs = 5_000;

export class HintBuffer {
  readonly #options: HintBufferOptions;
  readonly #avoidedUntil = new Map<number, number>();
  #hints: ReadyPlace[] = [];
  #taking: Promise<void> | null = null;
  /** There was something at the last look, or somebody has said that there is. */
  #mayHold = true;
  #rotation = 0;

  constructor(options: HintBufferOptions) {
    this.#options = options;
  }

  /** Nothing at hand, and nobody says that there is anything. */
  get idle(): boolean {
    return this.#hints.length === 0 && !this.#mayHold;
  }

  wake(): void {
    this.#mayHold = true;
  }

  async take(most: number): Promise<ReadyPlace[]> {
    if (this.#hints.length === 0 && this.#mayHold) await this.#fetch(most);
    const taken = this.#hints.splice(0, most);
    if (taken.length === most && this.#hints.length === 0 && this.#mayHold) void this.#fetch(most);
    return taken;
  }

  putBack(hints: readonly ReadyPlace[]): void {
    this.#hints.unshift(...hints);
  }

  /**
   * Most hints that come to nothing are old, or others were sooner. Some name what only others may take:
   * a type this worker does not know, or a paused queue. From such queues it claims directly for a while.
   */
  async returnForeign(
    places: readonly Place[],
    types: readonly string[] | null,
    jobs: readonly HeldJob[],
  ): Promise<void> {
    const { store, source, clock, events } = this.#options;
    const claimed = new Set(jobs.map(({ job }) => job.place?.seq));
    const left = places.filter(({ seq }) => !claimed.has(seq));
    try {
      const foreign = await store.foreignPlaces(left, types);
      const until = clock.monotonic() + avoidMs;
      for (const { queueId } of foreign) this.#avoidedUntil.set(queueId, until);
      if (foreign.length > 0) await source.put(foreign);
    } catch (error) {
      events.emit("service.failed", { service: "worker", error });
    }
  }

  async #fetch(most: number): Promise<void> {
    this.#taking ??= this.#takeMore(most).finally(() => {
      this.#taking = null;
    });
    await this.#taking;
  }

  async #takeMore(most: number): Promise<void> {
    const { source, from } = this.#options;
    // Before the question: what is put meanwhile says so again.
    this.#mayHold = false;
    const queueIds = this.#queuesInTurn();
    if (!source.isActive || queueIds.length === 0) return;
    const hints = await source.take(queueIds, most, from());
    if (hints.length >= most) this.#mayHold = true;
    this.#hints.push(...hints);
  }

  #queuesInTurn(): number[] {
    const now = this.#options.clock.monotonic();
    const ids = this.#options
      .queueIds()
      .filter((id) => (this.#avoidedUntil.get(id) ?? Number.NEGATIVE_INFINITY) <= now);
    const start = this.#rotation++ % Math.max(1, ids.length);
    return [...ids.slice(start), ...ids.slice(0, start)];
  }

  /** Of these queues hints are not taken: what is in them is looked for. */
  get avoids(): boolean {
    const now = this.#options.clock.monotonic();
    for (const until of this.#avoidedUntil.values()) if (until > now) return true;
    return false;
  }
}
