// What workers elsewhere offer to take straight from a flush, as remembered for a second. It is read after
// lone flushes only, never before one, and nobody waits for it. See docs/design/handover.md.

import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Flushed, Handover, NewJob, Offer } from "../store/store.ts";
import { jobText } from "../worker/fresh-job.ts";
import { Trails } from "../worker/trails.ts";

export interface StandingOffersOptions {
  readonly read: () => Promise<Offer[]>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const freshMs = 1_000;
/** By then a worker that was just busy has said whether it is quiet again. */
const readAfterMs = 300;

export class StandingOffers {
  readonly #options: StandingOffersOptions;
  readonly #trails: Trails;
  #offers: readonly Offer[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: StandingOffersOptions) {
    this.#options = options;
    this.#trails = new Trails(() => options.clock.monotonic());
  }

  /** One of those that serve this job, whichever. */
  find(job: NewJob): Handover | null {
    if (this.#offers.length === 0) return null;
    const { queueId, type, weight } = job;
    const fitting = this.#offers.filter((offer) => serves(offer, queueId, type));
    const offer = fitting[Math.floor(this.#options.random() * fitting.length)];
    if (offer === undefined) return null;
    const { leaseId, offerId, channel, leaseLeftMs } = offer;
    const afterSeq = Math.max(
      hintOf(offer, queueId, weight),
      this.#trails.afterSeq(queueId, weight),
    );
    // From the head of the queue the look for an older job may have to pass whatever was there before.
    if (afterSeq === 0) return null;
    const claimed = { claimId: randomUUID(), afterSeq, jobText: jobText(job) };
    return { leaseId, offerId, channel, leaseLeftMs, ...claimed };
  }

  /** A lone job was stored, with a handover if there was an offer for it. */
  stored(job: NewJob, handover: Handover | null, { claimedAt, lastSeq }: Flushed): void {
    if (handover !== null && claimedAt === null) this.#forget(handover);
    else if (handover !== null) {
      if (lastSeq !== null) this.#trails.note(job.queueId, job.weight, lastSeq);
      const { id, queueId } = job;
      this.#options.events.emit("handover.made", { id, queueId, lease: handover.leaseId });
    }
    this.#readIfOld();
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** It has gone, or something older waits: others are as good as before. */
  #forget({ leaseId }: Handover): void {
    this.#offers = this.#offers.filter((offer) => offer.leaseId !== leaseId);
  }

  #readIfOld(): void {
    if (this.#closed || this.#timer !== null) return;
    if (this.#options.clock.monotonic() - this.#readAt < freshMs) return;
    this.#timer = setTimeout(() => void this.#read(), readAfterMs);
    this.#timer.unref();
  }

  async #read(): Promise<void> {
    this.#timer = null;
    this.#readAt = this.#options.clock.monotonic();
    try {
      this.#offers = await this.#options.read();
    } catch {
      // Whatever is wrong there shows elsewhere; without offers jobs are claimed as always.
      this.#offers = [];
    }
  }
}

const serves = ({ queueIds, types }: Offer, queueId: number, type: string): boolean =>
  queueIds.includes(queueId) && (types === null || types.includes(type));

const hintOf = ({ hints }: Offer, queueId: number, weight: number): number =>
  hints.find((hint) => hint.queueId === queueId && hint.weight === weight)?.afterSeq ?? 0;
