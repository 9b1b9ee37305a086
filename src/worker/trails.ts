// How far a queue has been claimed, by weight: hints that trail what was claimed by at least `trailMs`, so that
// a flush which commits a little out of order is not passed by.

import type { ClaimHint } from "../store/store.ts";

const trailMs = 100;

/** The highest places claimed: just now, at the last turn of the trail, and at the one before. */
interface Trail {
  readonly queueId: number;
  readonly weight: number;
  recent: number;
  older: number;
  settled: number;
  turnedAt: number;
}

export class Trails {
  readonly #trails = new Map<string, Trail>();
  readonly #now: () => number;

  constructor(monotonic: () => number) {
    this.#now = monotonic;
  }

  get size(): number {
    return this.#trails.size;
  }

  note(queueId: number, weight: number, seq: number): void {
    const key = keyOf(queueId, weight);
    const now = this.#now();
    const trail = this.#trails.get(key);
    if (trail === undefined) {
      this.#trails.set(key, { queueId, weight, recent: seq, older: 0, settled: 0, turnedAt: now });
      return;
    }
    if (now - trail.turnedAt >= trailMs) {
      trail.settled = trail.older;
      trail.older = trail.recent;
      trail.turnedAt = now;
    }
    trail.recent = Math.max(trail.recent, seq);
  }

  /** A place in another queue leads nowhere any more. */
  keepOnly(queueIds: readonly number[]): void {
    for (const [key, { queueId }] of this.#trails)
      if (!queueIds.includes(queueId)) this.#trails.delete(key);
  }

  afterSeq(queueId: number, weight: number): number {
    return this.#trails.get(keyOf(queueId, weight))?.settled ?? 0;
  }

  hints(): ClaimHint[] {
    return [...this.#trails.values()].map(({ queueId, weight, settled }) => ({
      queueId,
      weight,
      afterSeq: settled,
    }));
  }
}

const keyOf = (queueId: number, weight: number) => `${queueId}:${weight}`;
