// Claims whose jobs are still to be read: those whose answer was lost, and those that a producer has made for
// us. Both are known by their id, and reading them twice gives the same jobs.

import type { Events } from "../runtime/events.ts";
import type { Claimed, ClaimRequest, HandedClaim, WorkerSession } from "../store/store.ts";
import type { Fetcher } from "./fetcher.ts";
import { namedIn, withPayloads } from "./fresh-job.ts";
import type { HeldJob, HeldJobs } from "./held-jobs.ts";

/** Enough to ask for it again. */
export type LostClaim = Pick<ClaimRequest, "claimId" | "leaseId">;

export interface ClaimReaderOptions {
  readonly session: WorkerSession;
  readonly fetcher: Fetcher;
  readonly held: HeldJobs;
  readonly worker: string;
  readonly leaseId: () => string;
  readonly deliver: (jobs: readonly HeldJob[]) => void;
  /** The same for jobs that nobody here has asked for; false: there was no room for them. */
  readonly deliverHanded: (jobs: readonly HeldJob[]) => boolean;
  readonly start: () => void;
  readonly settled: () => void;
  readonly events: Events;
}

export class ClaimReader {
  readonly #options: ClaimReaderOptions;
  #lost: LostClaim[] = [];
  #handed: HandedClaim[] = [];

  constructor(options: ClaimReaderOptions) {
    this.#options = options;
  }

  get pending(): boolean {
    return this.#lost.length > 0 || this.#handed.length > 0;
  }

  lose(claim: LostClaim): void {
    this.#lost.push(claim);
  }

  hand(claim: HandedClaim): void {
    this.#handed.push(claim);
  }

  async read(): Promise<void> {
    const { start } = this.#options;
    for (let claim = this.#handed[0]; claim !== undefined; claim = this.#handed[0])
      await this.#readHanded(claim);
    start();
    // Those that end at once join the next turn.
    await new Promise(setImmediate);
    for (let claim = this.#lost[0]; claim !== undefined; claim = this.#lost[0])
      await this.#replay(claim);
  }

  async #readHanded(claim: HandedClaim): Promise<void> {
    const { fetcher, held, worker, events, leaseId, deliverHanded, settled } = this.#options;
    // Under a lease that was lost meanwhile, whatever it brought belongs to others.
    const ours = claim.leaseId === leaseId();
    const jobs = ours ? await this.#jobsOf(claim) : [];
    this.#handed.shift();
    for (const { queueId, weight, seq } of jobs) fetcher.note(queueId, weight, seq);
    const kept = deliverHanded(held.add(claim.claimId, claim.leaseId, jobs));
    events.emit("handover.received", { worker, claim: claim.claimId, jobs: jobs.length, kept });
    settled();
  }

  /** If it is told which jobs they are, only their payloads are asked for. */
  async #jobsOf(claim: HandedClaim): Promise<Claimed["jobs"]> {
    const { session } = this.#options;
    const ids = namedIn(claim);
    const jobs = ids === null ? null : withPayloads(claim, ids, await session.payloads(ids));
    return jobs ?? (await session.handed(claim)).jobs;
  }

  async #replay(lost: LostClaim): Promise<void> {
    const { session, held, events, deliver, start, leaseId, settled } = this.#options;
    const ours = lost.leaseId === leaseId();
    const { jobs } = ours ? await session.replay(lost.claimId) : { jobs: [] };
    this.#lost.shift();
    if (ours) events.emit("claim.replayed", { claim: lost.claimId, jobs: jobs.length });
    deliver(held.add(lost.claimId, lost.leaseId, jobs));
    start();
    settled();
  }
}
