// Decides where the next claim looks.
//
// A claim walks the claim index from a remembered place (the hint) instead of over everything that was
// taken before. Flushes that commit so late that the hint has passed them are announced ("late") and scanned
// for. Scans from the head find what hints miss (late commits, weights not seen before), and are rationed by their cost.

import type { Place } from "../domain/job.ts";
import type { ClaimHint, ClaimRequest, Turned } from "../store/store.ts";
import { Trails } from "./trails.ts";

const scanRation = 10;
const scanEveryMs = 50;

export interface FetcherOptions {
  /** With a broker: how often to look for what no hint names. */
  readonly directEveryMs: number | null;
  readonly types: readonly string[] | null;
  readonly monotonic: () => number;
  readonly newClaimId: () => string;
}

export class Fetcher {
  readonly #options: FetcherOptions;
  readonly #trails: Trails;
  #queueIds: readonly number[] = [];
  #rotation = 0;
  #scanAllowedAt = 0;
  #scannedAt = Number.NEGATIVE_INFINITY;
  #fresh = true;
  /** Somebody said that something older than our hints may be there. */
  #late = true;
  #scanWanted = false;
  #directAt = Number.NEGATIVE_INFINITY;

  constructor(options: FetcherOptions) {
    this.#options = options;
    this.#trails = new Trails(options.monotonic);
  }

  get queueIds(): readonly number[] {
    return this.#queueIds;
  }

  serve(queueIds: readonly number[]): void {
    this.#queueIds = queueIds;
    this.#trails.keepOnly(queueIds);
    this.wake(true);
  }

  /** Something may be ready; `late`: possibly before the place where hints look. */
  wake(late: boolean): void {
    this.#fresh = true;
    if (late) this.#late = true;
  }

  /** Nothing was left when we looked last, and nobody has said otherwise since. */
  get idle(): boolean {
    return !this.#fresh && !this.#late;
  }

  /** Until the next look for what no hint names. */
  get directInMs(): number {
    const { directEveryMs } = this.#options;
    if (directEveryMs === null) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#directAt + directEveryMs - this.#now());
  }

  /** Until a claim makes sense: 0 now, a time when only the ration holds us back, null when idle. */
  waitMs(): number | null {
    if (this.#queueIds.length === 0) return null;
    if (this.idle && !this.#scanWanted) {
      const direct = this.directInMs;
      return direct === Number.POSITIVE_INFINITY ? null : direct;
    }
    if (this.#fresh && this.#trails.size > 0) return 0;
    return Math.max(0, this.#scanAllowedAt - this.#now());
  }

  /** A claim of what a broker has named. */
  requestAt(leaseId: string, limit: number, places: readonly Place[]): ClaimRequest {
    return {
      claimId: this.#options.newClaimId(),
      leaseId,
      limit,
      types: this.#options.types,
      queueIds: this.#queueIds,
      hints: null,
      places,
      suspect: false,
    };
  }

  request(leaseId: string, limit: number, suspect: boolean): ClaimRequest | null {
    if (this.directInMs === 0) this.#late = true;
    if ((this.idle && !this.#scanWanted) || limit <= 0 || this.#queueIds.length === 0) return null;
    const scan = this.#scanNow();
    if (!scan && (!this.#fresh || this.#trails.size === 0)) return null;
    this.#fresh = false;
    this.#directAt = this.#now();
    if (scan) {
      this.#late = false;
      this.#scanWanted = false;
    }
    return {
      claimId: this.#options.newClaimId(),
      leaseId,
      limit,
      types: this.#options.types,
      queueIds: this.#rotated(),
      hints: scan ? null : this.hints(),
      suspect,
    };
  }

  #scanNow(): boolean {
    const now = this.#now();
    if (now < this.#scanAllowedAt) return false;
    if (this.#late || this.#scanWanted || this.#trails.size === 0) return true;
    return now - this.#scannedAt >= scanEveryMs;
  }

  answered(request: ClaimRequest, jobs: Turned["jobs"], durationMs: number): void {
    const now = this.#now();
    this.#noteAll(jobs);
    if (request.places !== undefined) return;
    if (request.hints === null) {
      // What the first one takes is planning and loading for the most part, and whoever has just begun is waited for.
      const isFirst = this.#scannedAt === Number.NEGATIVE_INFINITY;
      this.#scannedAt = now;
      if (!isFirst) this.#scanAllowedAt = now + scanRation * durationMs;
    }
    if (jobs.length >= request.limit) this.#fresh = true;
    else if (request.hints !== null) {
      this.#scanWanted = true;
      // Found something, so hints serve: the scan may wait a moment and stays out of the next pickup's way.
      if (jobs.length > 0) this.#scanAllowedAt = Math.max(this.#scanAllowedAt, now + scanEveryMs);
    }
  }

  /** The claim's answer was lost: whatever was there may still be there. */
  failed(): void {
    this.wake(true);
  }

  /** They come sorted: the last of each queue and weight says it all. */
  #noteAll(jobs: Turned["jobs"]): void {
    let last: Turned["jobs"][number] | undefined;
    for (const job of jobs) {
      if (job.crashCount > 0) continue;
      if (last !== undefined && (last.queueId !== job.queueId || last.weight !== job.weight))
        this.note(last.queueId, last.weight, last.seq);
      last = job;
    }
    if (last !== undefined) this.note(last.queueId, last.weight, last.seq);
  }

  note(queueId: number, weight: number, seq: number): void {
    if (this.#queueIds.includes(queueId)) this.#trails.note(queueId, weight, seq);
  }

  hints(): ClaimHint[] {
    return this.#trails.hints();
  }

  #rotated(): number[] {
    const start = this.#rotation++ % this.#queueIds.length;
    return [...this.#queueIds.slice(start), ...this.#queueIds.slice(0, start)];
  }

  #now(): number {
    return this.#options.monotonic();
  }
}
