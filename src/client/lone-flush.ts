// One job, and a worker here that waits for it: there is nothing to join, to judge or to divide. This is what an idle
// queue's latency consists of, so it goes the shortest way, without promises and with few functions, and its run
// begins while it is being committed: see docs/design/early-start.md.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Flushed, NewJob, ProducerSession } from "../store/store.ts";
import { claimedLater, type FreshJob } from "../worker/fresh-job.ts";
import type { BegunRun } from "../worker/handovers.ts";
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
    const { claim, worker } = offer;
    const startedAt = clock.monotonic();
    const notice = announcer.noticeOf(jobs, startedAt, false);
    let fresh: ((at: Date) => FreshJob) | null = null;
    let begun: BegunRun | null = null;
    const begin = (at: Date) => {
      fresh ??= claimedLater(job, claim.claimId);
      begun = worker.begin(claim, fresh(at));
    };
    const done = (flushed: Flushed | Promise<Flushed>) => {
      if (flushed instanceof Promise)
        return void this.#mend(call, offer, startedAt, flushed, begun);
      fresh ??= claimedLater(job, claim.claimId);
      this.#settle(call, offer, startedAt, flushed, begun ?? fresh);
    };
    const early = job.waitForCommit !== true && worker.mayBegin(job.type) ? begin : null;
    const isSent = session.flushAtOnce(jobs, { notice, claim }, done, early);
    if (!isSent) worker.take(claim, [], null);
    // Read while the flush is on its way.
    else fresh ??= claimedLater(job, claim.claimId);
    return isSent;
  }

  #settle(
    call: Call,
    { worker, claim }: LocalOffer,
    startedAt: number,
    { claimedAt, lastSeq, answers }: Flushed,
    run: BegunRun | ((at: Date) => FreshJob),
  ): void {
    if (typeof run !== "function") run.stored(lastSeq);
    else worker.take(claim, claimedAt === null ? [] : [run(claimedAt)], lastSeq);
    answer([call], answers);
    this.#options.announcer.stored(call.jobs, claimedAt === null ? 0 : 1, startedAt);
    this.#options.ended();
  }

  /** What had to be found out, or to be tried again, is for no worker that waits; a run that has begun goes on. */
  async #mend(
    call: Call,
    { worker, claim }: LocalOffer,
    startedAt: number,
    flushing: Promise<Flushed>,
    begun: BegunRun | null,
  ): Promise<void> {
    try {
      const { answers } = await flushing;
      begun?.stored(null);
      answer([call], answers);
      this.#options.announcer.stored(call.jobs, begun === null ? 0 : 1, startedAt);
    } catch (error) {
      if (isUnknown(error)) begun?.doubted();
      else begun?.lost();
      call.reject(error);
    } finally {
      if (begun === null) worker.take(claim, [], null);
      this.#options.ended();
    }
  }
}

/** The server may have stored it, or may yet. */
const isUnknown = (error: unknown): boolean =>
  error instanceof MillraceError && error.code === "DATABASE_UNAVAILABLE";
