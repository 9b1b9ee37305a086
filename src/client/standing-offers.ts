// What workers elsewhere offer to take straight from a flush, as remembered for a second. It is read after
// flushes only, never before one, and nobody waits for it. See docs/design/handover.md.

import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { areAlike } from "../store/alike.ts";
import type { Flushed, Handover, NewJob, Offer } from "../store/store.ts";
import { jobText, jobTexts } from "../worker/fresh-job.ts";
import { Trails } from "../worker/trails.ts";

export interface StandingOffersOptions {
  readonly read: () => Promise<Offer[]>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const freshMs = 1_000;
/** While nothing is handed over although somebody offers. */
const soonMs = 200;
/** By then a worker that was just busy has said what it would take; if not, it is asked again, more rarely. */
const readAfterMs = 100;
const readLastAfterMs = 2_000;
/** Order is looked after; who commits later than this may be overtaken. */
const trailMs = 30;
const shortestPauseMs = 10;
const longestPauseMs = 320;

export class StandingOffers {
  readonly #options: StandingOffersOptions;
  readonly #trails: Trails;
  #offers: readonly Offer[] = [];
  #handing = false;
  #pauseMs = 0;
  #triesAgainAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: StandingOffersOptions) {
    this.#options = options;
    this.#trails = new Trails(() => options.clock.monotonic(), trailMs);
  }

  /** One of those that serve these jobs, whichever. */
  find(jobs: readonly NewJob[]): Handover | null {
    const [first] = jobs;
    if (this.#offers.length === 0 || first === undefined) return null;
    if (this.#options.clock.monotonic() < this.#triesAgainAt) return null;
    // Only a claim looks whether it may still start.
    if (first.expiresInMs !== undefined) return null;
    // A lone one may be like no other.
    if (jobs.length > 1 && !areAlike(jobs)) return null;
    const { queueId, type, weight } = first;
    const fitting = this.#offers.filter(
      (offer) => offer.atOnce >= jobs.length && serves(offer, queueId, type),
    );
    const offer = fitting[Math.floor(this.#options.random() * fitting.length)];
    if (offer === undefined) return null;
    const { leaseId, offerId, channel, leaseLeftMs, most } = offer;
    const afterSeq = Math.max(
      hintOf(offer, queueId, weight),
      this.#trails.afterSeq(queueId, weight),
    );
    // From the head of the queue the look for an older job may have to pass whatever was there before.
    if (afterSeq === 0) return null;
    const texts = jobs.length === 1 ? jobText(first) : jobTexts(jobs);
    const claimId = randomUUID();
    return texts && { claimId, leaseId, offerId, channel, leaseLeftMs, most, afterSeq, texts };
  }

  /** They were stored, with a handover if there was an offer for them. */
  stored(jobs: readonly NewJob[], handover: Handover | null, flushed: Flushed): void {
    const [first] = jobs;
    this.#handing = handover !== null && flushed.claimedAt !== null;
    if (handover !== null && first !== undefined) this.#tried(jobs, first, handover, flushed);
    this.#readIfOld();
  }

  #tried(
    jobs: readonly NewJob[],
    { id, queueId, weight }: NewJob,
    { leaseId }: Handover,
    { claimedAt, lastSeq }: Flushed,
  ): void {
    if (claimedAt === null) this.#refused(leaseId);
    else {
      this.#pauseMs = 0;
      if (lastSeq !== null) this.#trails.note(queueId, weight, lastSeq);
      const event = { id, jobs: jobs.length, queueId, lease: leaseId };
      this.#options.events.emit("handover.made", event);
    }
  }

  /** It is gone, or full, or something older waits: others are as good, or it takes a moment. */
  #refused(leaseId: string): void {
    if (this.#offers.length > 1)
      this.#offers = this.#offers.filter((offer) => offer.leaseId !== leaseId);
    else {
      this.#pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, 2 * this.#pauseMs));
      this.#triesAgainAt = this.#options.clock.monotonic() + this.#pauseMs;
    }
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #readIfOld(): void {
    if (this.#closed || this.#timer !== null) return;
    const patienceMs = this.#handing || this.#offers.length === 0 ? freshMs : soonMs;
    if (this.#options.clock.monotonic() - this.#readAt < patienceMs) return;
    this.#readIn(readAfterMs);
  }

  #readIn(ms: number): void {
    this.#timer = setTimeout(() => void this.#read(ms), ms);
    this.#timer.unref();
  }

  async #read(afterMs: number): Promise<void> {
    this.#timer = null;
    this.#readAt = this.#options.clock.monotonic();
    try {
      this.#offers = await this.#options.read();
    } catch {
      // Whatever is wrong there shows elsewhere; without offers jobs are claimed as always.
      this.#offers = [];
    }
    // Whoever is idle by now may say more in a moment: how far it has claimed, for one.
    if (this.#handing || this.#closed || this.#timer !== null) return;
    if (2 * afterMs <= readLastAfterMs) this.#readIn(2 * afterMs);
  }
}

const serves = ({ queueIds, types }: Offer, queueId: number, type: string): boolean =>
  queueIds.includes(queueId) && (types === null || types.includes(type));

const hintOf = ({ hints }: Offer, queueId: number, weight: number): number =>
  hints.find((hint) => hint.queueId === queueId && hint.weight === weight)?.afterSeq ?? 0;
