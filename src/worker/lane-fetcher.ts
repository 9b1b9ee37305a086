// Decides when to look into which controlled queue. One at a time, each in its turn: after a wake-up, after
// a run of its own has ended, when a throttle frees, and now and then while something waits there that
// may not start: others' slots become free without anybody saying so.

import type { LaneClaimed, LaneClaimRequest } from "../store/flow.ts";

interface Look {
  readonly queueId: number;
  at: number;
  /** Something waits there that could not start when we looked. */
  blocked: boolean;
  /** The last look brought so much that there may be more by now. */
  busy: boolean;
  backoffMs: number;
  /** While key after key is looked at for one that may start: since when, and how often the last was passed. */
  circle: { readonly since: number; passed: number } | null;
}

export interface LaneFetcherOptions {
  readonly types: readonly string[] | null;
  readonly pollMs: number;
  readonly monotonic: () => number;
  readonly newClaimId: () => string;
}

/** Runs that end within a moment free their slots together. */
const togetherMs = 4;
/** More than these are a stream: the next ones are there before anybody has been told of them. */
const fewJobs = 8;
const shortestMs = 25;
const longestMs = 1_000;
/** Going round all keys in vain is not to be most of what a worker does. */
const timesItsCost = 10;

export class LaneFetcher {
  readonly #options: LaneFetcherOptions;
  #looks: Look[] = [];

  constructor(options: LaneFetcherOptions) {
    this.#options = options;
  }

  get queueIds(): readonly number[] {
    return this.#looks.map(({ queueId }) => queueId);
  }

  serve(queueIds: readonly number[]): void {
    const known = new Map(this.#looks.map((look) => [look.queueId, look]));
    this.#looks = queueIds.map(
      (queueId) =>
        known.get(queueId) ?? {
          ...{ queueId, at: 0, blocked: false, busy: false, backoffMs: shortestMs, circle: null },
        },
    );
  }

  /** Something may be ready there; without queues: anywhere. */
  wake(queueIds: readonly number[] = []): void {
    for (const look of this.#looks)
      if (queueIds.length === 0 || queueIds.includes(look.queueId)) look.at = 0;
  }

  /** A run of ours has ended: what waited for its slot may start, and what has come meanwhile. */
  ended(queueId: number): void {
    const now = this.#options.monotonic();
    for (const look of this.#looks) {
      if (look.queueId !== queueId || !(look.blocked || look.busy)) continue;
      look.at = Math.min(look.at, look.busy ? now : now + togetherMs);
    }
  }

  get isDue(): boolean {
    return this.waitMs() === 0;
  }

  /** Until the next look; null: there is nothing to look into. */
  waitMs(): number | null {
    if (this.#looks.length === 0) return null;
    const next = Math.min(...this.#looks.map(({ at }) => at));
    return Math.max(0, next - this.#options.monotonic());
  }

  next(leaseId: string, limit: number, suspect: boolean): LaneClaimRequest | null {
    const now = this.#options.monotonic();
    const place = this.#looks.findIndex(({ at }) => at <= now);
    if (limit <= 0 || place === -1) return null;
    const [look] = this.#looks.splice(place, 1);
    if (look === undefined) return null;
    this.#looks.push(look);
    // Before the question: a wake-up meanwhile counts.
    look.at = now + this.#options.pollMs;
    const { types, newClaimId } = this.#options;
    return { claimId: newClaimId(), leaseId, queueId: look.queueId, limit, types, suspect };
  }

  answered(request: LaneClaimRequest, claimed: LaneClaimed): void {
    const { jobs, waiting, freeInMs } = claimed;
    const look = this.#looks.find(({ queueId }) => queueId === request.queueId);
    if (look === undefined) return;
    if (jobs.length > 0) look.backoffMs = shortestMs;
    if (jobs.length >= request.limit) look.at = 0;
    look.busy = jobs.length > fewJobs;
    look.blocked = waiting;
    const tookMs = this.#goRound(look, claimed);
    if (!waiting || look.at === 0) return;
    const inMs = freeInMs === null ? look.backoffMs : Math.max(freeInMs, shortestMs);
    look.at = Math.min(look.at, this.#options.monotonic() + Math.max(inMs, timesItsCost * tookMs));
    look.backoffMs = Math.min(longestMs, 2 * look.backoffMs);
  }

  /**
   * A claim looks at a bounded number of keys. Where none of them may start, the next one is sent at once, until
   * all have had their turn; answers how long that took in the end.
   */
  #goRound(look: Look, { jobs, visited }: LaneClaimed): number {
    const now = this.#options.monotonic();
    const { since, passed } = look.circle ?? { since: now, passed: 0 };
    const times = passed + (visited === "end" ? 1 : 0);
    if (visited === "all" || jobs.length > 0 || times >= 2) {
      look.circle = null;
      return now - since;
    }
    look.circle = { since, passed: times };
    look.at = 0;
    return 0;
  }

  failed(request: LaneClaimRequest): void {
    this.wake([request.queueId]);
  }
}
