// One job, and a worker here that waits for it: there is nothing to join, to judge or to divide. This is what an idle
// queue's latency consists of, so it goes the shortest way, without promises and with few functions.

import type { Clock } from "../runtime/clock.ts";
import type { Flushed, NewJob, ProducerSession } from "../store/store.ts";
import { claimedLater, type FreshJob } from "../worker/fresh-job.ts";
import type { Announcer } from "./announcer.ts";
import { answer, type Call } from "./call.ts";
import type { LocalOffer } from "./immediate-claim.ts";

export interface LoneFlushOptions {
  readonly session: Pick<ProducerSession, "flushAtOnce">;
  readonly clock: Clock;
  readonly announcer: Announcer;
  /** Need nobody be asked whether it fits? */
  readonly isFree: (job: NewJob) => boolean;
  readonly offer: (jobs: readonly NewJob[]) => LocalOffer | null;
  readonly ended: () => void;
}

export class LoneFlush {
  readonly #options: LoneFlushOptions;

  constructor(options: LoneFlushOptions) {
    this.#options = options;
  }

  /** False: it has to go the way that is for all. */
  flush(call: Call): boolean {
    const { session, clock, announcer, isFree } = this.#options;
    const { jobs } = call;
    const [job] = jobs;
    if (job === undefined || jobs.length > 1) return false;
    if (job.tenantSlot !== undefined || !isFree(job)) return false;
    const offer = this.#options.offer(jobs);
    if (offer === null) return false;
    const { claim } = offer;
    const startedAt = clock.monotonic();
    const notice = announcer.noticeOf(jobs, startedAt, false);
    let run: ((at: Date) => FreshJob) | null = null;
    const isSent = session.flushAtOnce(jobs, { notice, claim }, (flushed) => {
      run ??= claimedLater(job, claim.claimId);
      if (flushed instanceof Promise) void this.#mend(call, offer, startedAt, flushed);
      else this.#settle(call, offer, startedAt, flushed, run);
    });
    if (!isSent) offer.worker.take(claim, [], null);
    // Read while the flush is on its way.
    else run ??= claimedLater(job, claim.claimId);
    return isSent;
  }

  #settle(
    call: Call,
    { worker, claim }: LocalOffer,
    startedAt: number,
    { claimedAt, lastSeq, answers }: Flushed,
    run: (at: Date) => FreshJob,
  ): void {
    worker.take(claim, claimedAt === null ? [] : [run(claimedAt)], lastSeq);
    answer([call], answers);
    this.#options.announcer.stored(call.jobs, claimedAt === null ? 0 : 1, startedAt);
    this.#options.ended();
  }

  /** What had to be found out, or to be tried again, is for no worker that waits. */
  async #mend(
    call: Call,
    { worker, claim }: LocalOffer,
    startedAt: number,
    flushing: Promise<Flushed>,
  ): Promise<void> {
    try {
      const { answers } = await flushing;
      answer([call], answers);
      this.#options.announcer.stored(call.jobs, 0, startedAt);
    } catch (error) {
      call.reject(error);
    } finally {
      worker.take(claim, [], null);
      this.#options.ended();
    }
  }
}
