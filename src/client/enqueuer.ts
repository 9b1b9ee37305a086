// Calls to enqueue that happen together are committed together, each with its own answer.
//
// Calls of one tick, and all that come while a flush is under way, go out in the next flush. Jobs with
// names or delays flush on a lane of their own, so that somebody's blocked key delays nobody else.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type {
  Enqueued,
  Flushed,
  NewJob,
  Notice,
  NoticeTexts,
  ProducerSession,
  ReadyPlace,
} from "../store/store.ts";
import { Announcer, readyQueues } from "./announcer.ts";
import { answer, type Call } from "./call.ts";
import type { Refusal } from "./capacity.ts";
import {
  expectClaimed,
  type LocalOffer,
  type LocalWorker,
  lookingForOlder,
} from "./immediate-claim.ts";
import { LoneFlush } from "./lone-flush.ts";
import type { StandingOffers } from "./standing-offers.ts";

type Refusals = ReadonlyMap<Call, Refusal>;

export interface HintTaker {
  readonly canPut: boolean;
  /** Answers those it could not take. */
  put(places: readonly ReadyPlace[]): Promise<readonly ReadyPlace[]>;
}

export interface EnqueuerOptions {
  readonly session: ProducerSession;
  readonly keyWaitMs: number;
  /** Calls of several jobs are flushed apart from others. */
  readonly bulkAlone: boolean;
  readonly clock: Clock;
  readonly notices: NoticeTexts;
  /** Which calls meet a full queue; asked once per flush. */
  readonly admit: (calls: readonly Call[]) => Refusals | Promise<Refusals>;
  /** Need nobody be asked whether it fits? */
  readonly isFree: (job: NewJob) => boolean;
  readonly localWorkers: () => Iterable<{ readonly local: LocalWorker }>;
  /** Takes hints of what was stored, if there is a broker. */
  readonly broker: HintTaker | null;
  /** What workers elsewhere would take. */
  readonly offers: Pick<StandingOffers, "waitMs" | "find" | "stored" | "close"> | null;
  readonly hear: (notice: Notice) => void;
}

const mostPerFlush = 1_000;
/** Who hands everything over would not notice that the broker has gone, or is back: so often something goes through it. */
const brokerEveryMs = 1_000;
/** What is done after it comes after all that is under way now. A step of a promise is cheaper than queueMicrotask. */
const thisTick = Promise.resolve();

export class Enqueuer {
  readonly #options: EnqueuerOptions;
  #calls: Call[] = [];
  /** From the first call that waits until none does. */
  #busy = false;
  #idle: (() => void) | null = null;
  readonly #announcer: Announcer;
  readonly #lone: LoneFlush;
  readonly #hinting = new Set<Promise<void>>();
  #hintedAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: EnqueuerOptions) {
    this.#options = options;
    this.#announcer = new Announcer(options);
    this.#lone = new LoneFlush({
      ...options,
      announcer: this.#announcer,
      offer: (jobs) => this.#offer(jobs),
      ended: this.#ended,
    });
  }

  enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    if (this.#closed) return Promise.reject(new MillraceError("STOPPED"));
    return new Promise((resolve, reject) => {
      const giveUpAt = this.#options.clock.monotonic() + this.#options.keyWaitMs;
      this.#calls.push({ jobs, resolve, reject, giveUpAt });
      if (this.#busy) return;
      this.#busy = true;
      // Everybody in this tick joins the flush.
      void thisTick.then(this.#begin);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#busy)
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    this.#options.offers?.close();
    await Promise.all(this.#hinting);
    await this.#announcer.close();
    await this.#options.session.close();
  }

  readonly #begin = (): void => {
    const [call] = this.#calls;
    if (call !== undefined && this.#calls.length === 1 && this.#lone.flush(call)) {
      this.#calls.shift();
      return;
    }
    this.#flushSafely(this.#nextCalls()).then(this.#ended, this.#ended);
  };

  /** Everybody who was just answered joins the next flush. */
  readonly #ended = (): void => {
    setImmediate(this.#goOn);
  };

  readonly #goOn = (): void => {
    if (this.#calls.length > 0) this.#begin();
    else {
      this.#busy = false;
      this.#idle?.();
    }
  };

  #nextCalls(): Call[] {
    let jobs = 0;
    let count = 0;
    for (const call of this.#calls) {
      jobs += call.jobs.length;
      // A call of several named jobs is all or nothing, so it goes alone.
      const alone = this.#options.bulkAlone && call.jobs.length > 1;
      if (count > 0 && (alone || jobs > mostPerFlush)) break;
      count++;
      if (alone) break;
    }
    return this.#calls.splice(0, count);
  }

  async #flushSafely(calls: Call[]): Promise<void> {
    try {
      const admitting = this.#options.admit(calls);
      const refused = admitting instanceof Promise ? await admitting : admitting;
      for (const [call, refusal] of refused) {
        if (refusal instanceof Error) call.reject(refusal);
        else answer([call], refusal);
      }
      const admitted = refused.size === 0 ? calls : calls.filter((call) => !refused.has(call));
      if (admitted.length > 0) await this.#flush(admitted);
    } catch (error) {
      if (error instanceof MillraceError && error.code === "KEY_BUSY")
        await this.#flushBlocked(calls, error);
      else for (const call of calls) call.reject(error);
    }
  }

  /** One of these waits for a key that somebody's open transaction holds: find it, let the others pass. */
  async #flushBlocked(calls: readonly Call[], error: unknown): Promise<void> {
    const [only] = calls;
    if (calls.length === 1 && only !== undefined) {
      if (this.#options.clock.monotonic() < only.giveUpAt) {
        this.#calls.push(only);
        if (this.#calls.length === 1) await this.#options.clock.sleep(100);
      } else only.reject(new MillraceError("KEY_BUSY", undefined, { cause: error }));
      return;
    }
    const half = calls.length >> 1;
    await this.#flushSafely(calls.slice(0, half));
    await this.#flushSafely(calls.slice(half));
  }

  async #flush(calls: readonly Call[]): Promise<void> {
    const { session, clock, broker, offers } = this.#options;
    const jobs = calls.length === 1 ? (calls[0]?.jobs ?? []) : calls.flatMap((call) => call.jobs);
    // Where PostgreSQL decides the order, nobody is told places, and nothing is claimed on its way in.
    const controlled = jobs.some((job) => job.tenantSlot !== undefined);
    const offer = controlled ? null : this.#offer(jobs);
    const places = offer === null && broker?.canPut === true && !controlled;
    const brokersTurn = places && clock.monotonic() - this.#hintedAt >= brokerEveryMs;
    const others = offer === null && !controlled && !brokersTurn ? offers : null;
    const waitMs = others?.waitMs(jobs) ?? 0;
    if (waitMs > 0) await clock.sleep(waitMs);
    const started = clock.monotonic();
    const handover = others?.find(jobs) ?? null;
    const flushing = session.flush(jobs, {
      notice: places ? null : this.#announcer.noticeOf(jobs, started, handover !== null),
      places,
      claim: offer?.claim,
      handover: handover ?? undefined,
      atomic: calls.length === 1 && jobs.length > 1,
    });
    const claimed = offer === null ? null : expectClaimed(jobs, offer.claim);
    let flushed: Flushed | null = null;
    try {
      flushed = await flushing;
    } finally {
      if (offer !== null)
        offer.worker.take(offer.claim, claimed?.(flushed) ?? [], flushed?.lastSeq ?? null);
    }
    answer(calls, flushed.answers);
    others?.stored(jobs, handover, flushed);
    if (flushed.places !== null) return this.#hint(flushed.places);
    if (places && flushed.claimedAt === null) await this.#announcer.ready(readyQueues(jobs));
    const handed = flushed.claimedAt === null ? 0 : (offer?.claim.count ?? jobs.length);
    this.#announcer.stored(jobs, handed, started);
  }

  /** Nobody waits for this but close(). */
  #hint(places: readonly ReadyPlace[]): void {
    this.#hintedAt = this.#options.clock.monotonic();
    const hinting = this.#putHints(places).finally(() => this.#hinting.delete(hinting));
    this.#hinting.add(hinting);
  }

  /** Whoever the broker cannot tell is told as without it. */
  async #putHints(places: readonly ReadyPlace[]): Promise<void> {
    const { broker, hear } = this.#options;
    const left = (await broker?.put(places)) ?? places;
    if (left.length === 0) return;
    const queueIds = new Set(left.map(({ queueId }) => queueId));
    hear({ kind: "ready", queueIds: [...queueIds], late: false });
    await this.#announcer.ready(queueIds);
  }

  #offer(jobs: readonly NewJob[]): LocalOffer | null {
    for (const { local: worker } of this.#options.localWorkers()) {
      const claim = worker.offer(jobs);
      if (claim !== null) return { worker, claim: lookingForOlder(claim, jobs) };
    }
    return null;
  }
}
