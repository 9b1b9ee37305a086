// The hints a worker has taken and not yet claimed. While there are plenty, and handlers are quick, the
// next ones are taken while the last turn is under way.

import type { Place } from "../domain/job.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { ClaimHint, ReadyPlace, Store } from "../store/store.ts";

export interface HintSource {
  readonly canTake: boolean;
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
  readonly store: Store;
  /** What this worker can run; null: everything. */
  readonly types: readonly string[] | null;
  readonly queueIds: () => readonly number[];
  readonly from: () => readonly ClaimHint[];
  /** What is taken ahead of its time is kept from others: only where it is soon used. */
  readonly takesAhead: () => boolean;
  readonly clock: Clock;
  readonly events: Events;
}

const avoidMs = 5_000;
const lookEveryMs = 1_000;

export class HintBuffer {
  readonly #options: HintBufferOptions;
  readonly #avoidedUntil = new Map<number, number>();
  readonly #returning = new Set<Promise<void>>();
  #hints: ReadyPlace[] = [];
  #taking: Promise<void> | null = null;
  /** There was something at the last look, or somebody has said that there is. */
  #mayHold = true;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #rotation = 0;
  #closed = false;

  constructor(options: HintBufferOptions) {
    this.#options = options;
  }

  /** Nothing at hand or on its way, and nobody says that there is anything. */
  get idle(): boolean {
    return this.#hints.length === 0 && this.#taking === null && !this.#mayHold;
  }

  wake(): void {
    this.#mayHold = true;
  }

  /** Nobody tells of a window that waits for its refill, or of a Redis that is back. */
  wakeIfDue(): void {
    if (this.#options.clock.monotonic() - this.#lookedAt >= lookEveryMs) this.wake();
  }

  async take(most: number): Promise<ReadyPlace[]> {
    if (this.#hints.length === 0 && !this.idle) await this.#fetch(most);
    const taken = this.#hints.splice(0, most);
    const isMore = taken.length === most && this.#hints.length === 0 && this.#mayHold;
    if (isMore && this.#options.takesAhead()) void this.#fetch(most);
    return taken;
  }

  putBack(hints: readonly ReadyPlace[]): void {
    if (this.#closed) this.#return(async () => hints);
    else this.#hints.unshift(...hints);
  }

  /**
   * A claim did not bring these. Most such hints are old, or somebody else was faster. Those of a type
   * that this worker does not know, or in a paused queue, are for others or for later; this worker
   * claims directly from such queues for a while.
   */
  missed(places: readonly Place[]): void {
    const { store, types, clock } = this.#options;
    this.#return(async () => {
      const hints = await store.foreignPlaces(places, types);
      const until = clock.monotonic() + avoidMs;
      for (const { queueId } of hints) this.#avoidedUntil.set(queueId, until);
      return hints;
    });
  }

  /** Others may have what was not claimed. Nothing is taken any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#taking;
    this.putBack(this.#hints.splice(0));
    await Promise.all(this.#returning);
  }

  /** Of some queues hints are not taken: what is in them is looked for. */
  get avoids(): boolean {
    const now = this.#options.clock.monotonic();
    for (const until of this.#avoidedUntil.values()) if (until > now) return true;
    return false;
  }

  #return(find: () => Promise<readonly ReadyPlace[]>): void {
    const { source, events } = this.#options;
    const returning = find()
      .then(async (hints) => {
        if (hints.length > 0) await source.put(hints);
      })
      .catch((error) => events.emit("service.failed", { service: "worker", error }))
      .finally(() => this.#returning.delete(returning));
    this.#returning.add(returning);
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
    this.#lookedAt = this.#options.clock.monotonic();
    const queueIds = this.#queuesInTurn();
    if (this.#closed || !source.canTake || queueIds.length === 0) return;
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
}
