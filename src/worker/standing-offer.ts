// Offers to take jobs straight from whoever stores them, while this worker has room. Only a hint: what comes of
// it without room is given back. See docs/design/handover.md.

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
  readonly room: () => number;
  /** Are all slots taken? */
  readonly isFull: () => boolean;
  /** What could be handed over now; null: nothing. */
  readonly describe: () => Described | null;
  readonly clock: Clock;
  readonly events: Events;
}

/** What is so for a moment only need not be said. */
const saidAfterMs = 20;
/** Quick runs are over by then; of others it is known that they are not quick. */
const fullMs = 20;
const describeEveryMs = 1_000;
const againMs = 250;
const mostHints = 200;

export type Described = Omit<Offer, "leaseId" | "offerId" | "channel">;

interface Told {
  readonly leaseId: string;
  readonly offerId: string;
  readonly channel: string;
  readonly queues: string;
  readonly hints: readonly ClaimHint[];
  readonly most: number;
  readonly at: number;
}

export class StandingOffer {
  readonly #options: StandingOfferOptions;
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

  /** There may be room, or something new to say. */
  consider(): void {
    if (this.#timer !== null || this.#closed || this.#options.listener === null) return;
    if (this.#stands && !this.#isOutdated) return;
    this.#wait(saidAfterMs);
  }

  /** Jobs have come: there may be no room any more. */
  note(): void {
    if (this.#wanted === null || !this.#options.isFull()) this.consider();
    else if (this.#fullTimer === null) {
      this.#fullTimer = setTimeout(() => this.#wasFull(), fullMs);
      this.#fullTimer.unref();
    }
  }

  #wasFull(): void {
    this.#fullTimer = null;
    if (this.#options.room() === 0) this.withdraw();
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
    const ageMs = clock.monotonic() - before.at;
    if (ageMs < saidAfterMs) return false;
    const now = describe();
    if (now === null) return false;
    if (hintsOf(now).length > before.hints.length || now.most > 2 * before.most) return true;
    if (ageMs < describeEveryMs) return false;
    return queuesOf(now) !== before.queues || !isSame(hintsOf(now), before.hints);
  }

  #wait(ms: number): void {
    this.#timer = setTimeout(() => this.#waited(), ms);
    this.#timer.unref();
  }

  #waited(): void {
    this.#timer = null;
    const { leaseId, describe } = this.#options;
    if (leaseId() !== "" && describe() !== null) {
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
    const { most } = offer;
    this.#told = { leaseId, offerId, channel, queues, hints, most, at: clock.monotonic() };
    if (!same || known.most !== most || !isSame(known.hints, hints))
      await session.offer({ ...offer, hints, leaseId, offerId, channel });
    // What was claimed just now shows in the hints a little later.
    if (!same || !isSame(known.hints, hints))
      this.#again(known === null || clock.monotonic() - known.at >= describeEveryMs);
    if (this.#wanted !== leaseId || listener.stands(leaseId)) return;
    this.#stood = leaseId;
    await listener.stand(leaseId, channel);
    if (listener.stands(leaseId)) events.emit("offer.made", { worker, lease: leaseId });
  }

  #again(soon: boolean): void {
    if (this.#timer === null && !this.#closed) this.#wait(soon ? againMs : describeEveryMs);
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
