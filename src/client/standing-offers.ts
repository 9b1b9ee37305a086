// What workers elsewhere offer to take straight from a flush, as remembered for a second. It is read after
// flushes only, never before one, and nobody waits for it. See docs/design/handover.md.

import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { areAlike } from "../store/alike.ts";
import type { Flushed, Handover, NewJob, Offer, Seen } from "../store/store.ts";
import { jobText, jobTexts } from "../worker/job-texts.ts";
import { Trails } from "../worker/trails.ts";
import { Pace } from "./pace.ts";

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
/** What comes in smaller ones is no stream: its callers need not wait for anybody. */
const smallFlush = 8;
const shortestPauseMs = 10;
const longestPauseMs = 320;

export class StandingOffers {
  readonly #options: StandingOffersOptions;
  readonly #trails: Trails;
  #offers: readonly Offer[] = [];
  #handing = false;
  #pauseMs = 0;
  readonly #paces = new Map<string, Pace>();
  /** Is the next try one that somebody waited for? */
  #isWaited = false;
  #triesAgainAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: StandingOffersOptions) {
    this.#options = options;
    this.#trails = new Trails(() => options.clock.monotonic(), trailMs);
  }

  /** How long these should wait, so that whoever is to take them keeps up. */
  waitMs(jobs: readonly NewJob[]): number {
    if (jobs.length <= smallFlush || this.#isPausing) return 0;
    const waits = this.#fitting(jobs).map((offer) => this.#waitFor(offer, jobs.length));
    return waits.length === 0 ? 0 : Math.min(...waits);
  }

  get #isPausing(): boolean {
    return this.#options.clock.monotonic() < this.#triesAgainAt;
  }

  #waitFor({ leaseId, most }: Offer, jobs: number): number {
    return this.#paces.get(leaseId)?.waitMs(jobs, most, this.#options.clock.monotonic()) ?? 0;
  }

  #fitting(jobs: readonly NewJob[]): readonly Offer[] {
    const [first] = jobs;
    if (first === undefined) return [];
    const { queueId, type } = first;
    return this.#offers.filter(
      (offer) => offer.atOnce >= jobs.length && serves(offer, queueId, type),
    );
  }

  /** One of those that serve these jobs: whichever, of several one that keeps up. */
  find(jobs: readonly NewJob[]): Handover | null {
    const [first] = jobs;
    if (this.#offers.length === 0 || first === undefined || this.#isPausing) return null;
    // Only a claim looks whether it may still start.
    if (first.expiresInMs !== undefined) return null;
    // A lone one may be like no other.
    if (jobs.length > 1 && !areAlike(jobs)) return null;
    const { queueId, weight } = first;
    const fitting = this.#fitting(jobs);
    const ready = fitting.filter((one) => this.#waitFor(one, jobs.length) === 0);
    const choice = ready.length === 0 ? fitting : ready;
    const offer = choice[Math.floor(this.#options.random() * choice.length)];
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
    { claimedAt, lastSeq, seen }: Flushed,
  ): void {
    if (claimedAt === null) this.#refused(leaseId, seen);
    else {
      this.#pauseMs = 0;
      this.#isWaited = false;
      if (seen !== undefined)
        this.#paceOf(leaseId).took(jobs.length, seen, this.#options.clock.monotonic());
      if (lastSeq !== null) this.#trails.note(queueId, weight, lastSeq);
      const event = { id, jobs: jobs.length, queueId, lease: leaseId };
      this.#options.events.emit("handover.made", event);
    }
  }

  #paceOf(leaseId: string): Pace {
    const pace = this.#paces.get(leaseId) ?? new Pace();
    this.#paces.set(leaseId, pace);
    return pace;
  }

  /** It is gone, or full, or something older waits: others are as good, or it takes a moment. */
  #refused(leaseId: string, seen: Seen | undefined): void {
    const now = this.#options.clock.monotonic();
    const isNear = seen !== undefined && this.#paceOf(leaseId).refused(seen, now);
    if (this.#offers.length > 1) {
      this.#offers = this.#offers.filter((offer) => offer.leaseId !== leaseId);
      return;
    }
    // Waited for once, it is tried again at once; if that was in vain, later and later.
    if (isNear && !this.#isWaited) {
      this.#isWaited = true;
      return;
    }
    this.#pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, 2 * this.#pauseMs));
    this.#triesAgainAt = now + this.#pauseMs;
    this.#isWaited = false;
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
    const leases = new Set(this.#offers.map(({ leaseId }) => leaseId));
    for (const leaseId of this.#paces.keys()) if (!leases.has(leaseId)) this.#paces.delete(leaseId);
    // Whoever is idle by now may say more in a moment: how far it has claimed, for one.
    if (this.#handing || this.#closed || this.#timer !== null) return;
    if (2 * afterMs <= readLastAfterMs) this.#readIn(2 * afterMs);
  }
}

const serves = ({ queueIds, types }: Offer, queueId: number, type: string): boolean =>
  queueIds.includes(queueId) && (types === null || types.includes(type));

const hintOf = ({ hints }: Offer, queueId: number, weight: number): number =>
  hints.find((hint) => hint.queueId === queueId && hint.weight === weight)?.afterSeq ?? 0;
