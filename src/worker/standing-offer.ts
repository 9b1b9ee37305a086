// Offers to take lone jobs straight from whoever stores them, while this worker is quiet. Only a hint: what
// comes of it without room is given back. See docs/design/handover.md.

import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { ClaimHint, LeaseSession, Listener, Offer } from "../store/store.ts";

export interface StandingOfferOptions {
  readonly worker: string;
  readonly session: Pick<LeaseSession, "offer">;
  /** null: nothing is offered here. */
  readonly listener: Listener | null;
  readonly leaseId: () => string;
  /** Slots in which a job would start at once. */
  readonly free: () => number;
  /** What could be handed over now; null: nothing. */
  readonly describe: () => Described | null;
  readonly clock: Clock;
  readonly events: Events;
}

/** Since more than a few jobs came at once. */
const quietMs = 200;
/** Whoever is idle for a moment only need not say so. */
const idleMs = 20;
/** Quick runs are over by then, and the slot is free again. */
const fullMs = 10;
const describeEveryMs = 5_000;
/** More jobs than these in one claim are no lone ones. */
const fewJobs = 3;
const mostHints = 200;

export type Described = Omit<Offer, "leaseId" | "offerId" | "channel">;

interface Told {
  readonly leaseId: string;
  readonly offerId: string;
  readonly channel: string;
  readonly queues: string;
  readonly hints: readonly ClaimHint[];
  readonly at: number;
}

export class StandingOffer {
  readonly #options: StandingOfferOptions;
  #busyAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #fullTimer: NodeJS.Timeout | null = null;
  /** The lease under which it is to stand. */
  #wanted: string | null = null;
  /** The lease under which it was made to stand last. */
  #stood: string | null = null;
  #told: Told | null = null;
  #changing: Promise<void> | null = null;
  #closed = false;

  constructor(options: StandingOfferOptions) {
    this.#options = options;
  }

  /** Has anybody been able to hand something over under the present lease? */
  get wasMade(): boolean {
    return this.#stood !== null && this.#stood === this.#options.leaseId();
  }

  /** There is nothing to do: if it stays like that, lone jobs are welcome. */
  consider(): void {
    if (this.#timer !== null || this.#closed || this.#options.listener === null) return;
    if (this.#stands && !this.#isOutdated) return;
    this.#wait(Math.max(idleMs, this.#quietInMs));
  }

  /** So many jobs have come at once. */
  note(jobs: number): void {
    if (jobs > fewJobs) this.#busyAt = this.#options.clock.monotonic();
    if (this.#wanted === null) return;
    if (jobs > fewJobs) this.withdraw();
    else if (this.#fullTimer === null && this.#options.free() <= 0) {
      this.#fullTimer = setTimeout(() => this.#wasFull(), fullMs);
      this.#fullTimer.unref();
    }
  }

  #wasFull(): void {
    this.#fullTimer = null;
    if (this.#options.free() <= 0) this.withdraw();
  }

  /** Nobody waits for it: what is handed over meanwhile is given back. */
  withdraw(): void {
    if (this.#wanted === null) return;
    this.#wanted = null;
    this.#change();
  }

  /** Resolves when nothing can be handed over any more. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of [this.#timer, this.#fullTimer]) if (timer !== null) clearTimeout(timer);
    this.withdraw();
    await this.#changing;
  }

  get #stands(): boolean {
    const { listener, leaseId } = this.#options;
    return this.#wanted === leaseId() && listener?.stands(leaseId()) === true;
  }

  /** Its queues are others by now; or it is time to say how far they were claimed. */
  get #isOutdated(): boolean {
    const { clock, describe } = this.#options;
    const before = this.#told;
    if (before === null) return true;
    const isOld = clock.monotonic() - before.at >= describeEveryMs;
    const now = describe();
    if (now === null) return false;
    if (hintsOf(now).length > before.hints.length) return true;
    return isOld && (queuesOf(now) !== before.queues || !isSame(hintsOf(now), before.hints));
  }

  get #quietInMs(): number {
    return this.#busyAt + quietMs - this.#options.clock.monotonic();
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#waited(), ms);
    this.#timer.unref();
  }

  #waited(): void {
    this.#timer = null;
    const { leaseId, describe } = this.#options;
    if (this.#quietInMs > 0) this.#wait(this.#quietInMs);
    else if (leaseId() !== "" && describe() !== null) {
      this.#wanted = leaseId();
      this.#change();
    }
  }

  /** One change at a time; what was wanted last is what it ends with. */
  #change(): void {
    this.#changing ??= this.#changeAll().finally(() => {
      this.#changing = null;
    });
  }

  async #changeAll(): Promise<void> {
    const { events } = this.#options;
    for (let done: string | null | undefined; done !== this.#wanted; ) {
      done = this.#wanted;
      try {
        if (this.#stood !== null && this.#stood !== done) await this.#leave(this.#stood);
        if (done !== null) await this.#stand(done);
      } catch (error) {
        events.emit("service.failed", { service: "standing-offer", error });
        if (this.#wanted === done) this.#wanted = null;
        this.#told = null;
      }
    }
  }

  async #stand(leaseId: string): Promise<void> {
    const { listener, session, describe, clock, worker, events } = this.#options;
    const offer = describe();
    if (offer === null || listener === null) return;
    const known = this.#told;
    const queues = queuesOf(offer);
    const hints = hintsOf(offer);
    const same = known?.leaseId === leaseId && known.queues === queues;
    const channel = known?.leaseId === leaseId ? known.channel : newChannel();
    const offerId = same ? known.offerId : randomUUID();
    this.#told = { leaseId, offerId, channel, queues, hints, at: clock.monotonic() };
    if (!same || !isSame(known.hints, hints))
      await session.offer({ ...offer, hints, leaseId, offerId, channel });
    if (this.#wanted !== leaseId || listener.stands(leaseId)) return;
    this.#stood = leaseId;
    await listener.stand(leaseId, channel);
    if (listener.stands(leaseId)) events.emit("offer.made", { worker, lease: leaseId });
  }

  async #leave(leaseId: string): Promise<void> {
    const { listener, worker, events } = this.#options;
    if (listener?.stands(leaseId) !== true) return;
    await listener.leave(leaseId);
    events.emit("offer.withdrawn", { worker, lease: leaseId });
  }
}

/** Nobody guesses it; names of channels have at most 63 bytes. */
const newChannel = () => `millrace_${randomBytes(24).toString("hex")}`;

/** Without one for its queue and priority nothing is handed over. */
const hintsOf = ({ hints }: Described): readonly ClaimHint[] =>
  hints.filter(({ afterSeq }) => afterSeq > 0).slice(-mostHints);

const isSame = (one: readonly ClaimHint[], other: readonly ClaimHint[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

const queuesOf = ({ queueIds, types }: Pick<Offer, "queueIds" | "types">) =>
  JSON.stringify([queueIds, types]);
