// What this process holds: jobs by id, and the claims they came with.

import type { ClaimedJob } from "../domain/job.ts";
import { type AbortCause, AbortHandle } from "./abort-handle.ts";
import { Line, type Link } from "./line.ts";

export class HeldJob extends AbortHandle {
  readonly job: ClaimedJob;
  readonly leaseId: string;
  started = false;
  startedAt = 0;
  /** False while its job is being committed: its end waits for that. */
  isStored = true;
  /** Among those that are held. */
  place: Link<HeldJob> | null = null;
  /** Among the runs that did not end at once. */
  run: Link<HeldJob> | null = null;

  constructor(job: ClaimedJob, leaseId: string) {
    super();
    this.job = job;
    this.leaseId = leaseId;
  }
}

export class HeldJobs {
  readonly #jobs = new Line<HeldJob>();
  /** Claims with how many of their jobs are not settled; a claim under way counts as held. */
  readonly #claims = new Map<string, number>();
  #finished: string[] = [];
  #suspects = 0;
  readonly #onSuspectGone: (held: HeldJob) => void;

  constructor(onSuspectGone: (held: HeldJob) => void = () => {}) {
    this.#onSuspectGone = onSuspectGone;
  }

  get size(): number {
    return this.#jobs.length;
  }

  /** False also while it is not known what a claim has brought. */
  get empty(): boolean {
    return this.#claims.size === 0;
  }

  get claims(): readonly string[] {
    return [...this.#claims.keys()];
  }

  holds(claimId: string): boolean {
    return this.#claims.has(claimId);
  }

  get holdsSuspect(): boolean {
    return this.#suspects > 0;
  }

  /** Before a claim is sent, so that a renewal meanwhile lists it. */
  expect(claimId: string): void {
    this.#claims.set(claimId, 0);
  }

  forget(claimId: string): void {
    if (this.#claims.get(claimId) === 0) this.#claims.delete(claimId);
  }

  add(claimId: string, leaseId: string, jobs: readonly ClaimedJob[]): HeldJob[] {
    if (jobs.length === 0) {
      this.forget(claimId);
      return [];
    }
    this.#claims.set(claimId, jobs.length);
    return jobs.map((job) => {
      const held = new HeldJob(job, leaseId);
      held.place = this.#jobs.add(held);
      if (job.crashCount > 0) this.#suspects++;
      return held;
    });
  }

  /** The run has ended and its end has been stored (or refused). */
  settled(held: HeldJob): void {
    const { job, place } = held;
    if (place === null) return;
    this.#jobs.remove(place);
    held.place = null;
    if (job.crashCount > 0) {
      this.#suspects--;
      this.#onSuspectGone(held);
    }
    const { claimId } = job.token;
    const left = (this.#claims.get(claimId) ?? 1) - 1;
    if (left > 0) this.#claims.set(claimId, left);
    else {
      this.#claims.delete(claimId);
      this.#finished.push(claimId);
    }
  }

  /** Claims that are wholly settled since the last call: their rows can go. */
  takeFinishedClaims(): string[] {
    const finished = this.#finished;
    this.#finished = [];
    return finished;
  }

  abort(cause: AbortCause, which: (held: HeldJob) => boolean): HeldJob[] {
    const aborted: HeldJob[] = [];
    for (const held of this.#jobs.all()) {
      if (which(held) && held.abort(cause)) aborted.push(held);
    }
    return aborted;
  }

  all(): HeldJob[] {
    return this.#jobs.all();
  }
}

/** What events tell of a job: never its payload. */
export const runningJob = ({ id, type, queueId, tenant, attempt, correlationId }: ClaimedJob) => ({
  id,
  type,
  queueId,
  tenant,
  attempt,
  correlationId,
});
