// How far a queue has been claimed, by weight: hints that trail what was claimed by at least `trailMs`, so that
// a flush which commits a little out of order is not passed by.

import type { ClaimHint } from "../store/store.ts";

const usualTrailMs = 100;

/** The highest places claimed: just now, at the last turn of the trail, and at the one before. */
interface Trail {
  readonly queueId: number;
  readonly weight: number;
  recent: number;
  older: number;
  settled: number;
  turnedAt: number;
  notedAt: number;
}

export class Trails {
  readonly #trails = new Map<string, Trail>();
  readonly #now: () => number;
  readonly #trailMs: number;

  constructor(monotonic: () => number, trailMs = usualTrailMs) {
    this.#now = monotonic;
    this.#trailMs = trailMs;
  }

  get size(): number {
    return this.#trails.size;
  }

  note(queueId: number, weight: number, seq: number): void {
    const key = keyOf(queueId, weight);
    const now = this.#now();
    const trail = this.#trails.get(key);
    if (trail === undefined) {
      const none = { older: 0, settled: 0 };
      const times = { turnedAt: now, notedAt: now };
      this.#trails.set(key, { queueId, weight, recent: seq, ...none, ...times });
      return;
    }
    this.#turn(trail, now);
    trail.recent = Math.max(trail.recent, seq);
    trail.notedAt = now;
  }

  #turn(trail: Trail, now: number): void {
    if (now - trail.notedAt >= this.#trailMs) {
      trail.settled = trail.recent;
      trail.older = trail.recent;
      trail.turnedAt = now;
    } else if (now - trail.turnedAt >= this.#trailMs) {
      trail.settled = trail.older;
      trail.older = trail.recent;
      trail.turnedAt = now;
    }
  }

  /** A place in another queue leads nowhere any more. */
  keepOnly(queueIds: readonly number[]): void {
    for (const [key, { queueId }] of this.#trails)
      if (!queueIds.includes(queueId)) this.#trails.delete(key);
  }

  afterSeq(queueId: number, weight: number): number {
    const trail = this.#trails.get(keyOf(queueId, weight));
    if (trail === undefined) return 0;
    this.#turn(trail, this.#now());
    return trail.settled;
  }

  hints(): ClaimHint[] {
    const now = this.#now();
    const hints: ClaimHint[] = [];
    for (const trail of this.#trails.values()) {
      this.#turn(trail, now);
      const { queueId, weight, settled } = trail;
      hints.push({ queueId, weight, afterSeq: settled });
    }
    return hints;
  }
}

const keyOf = (queueId: number, weight: number) => `${queueId}:${weight}`;
