// Jobs that a local worker claims in the very flush that stores them.

import type { ClaimedJob } from "../domain/job.ts";
import type { ClaimHint, Flushed, ImmediateClaim, NewJob } from "../store/store.ts";
import { claimedLater } from "../worker/fresh-job.ts";
import type { BegunRun } from "../worker/handovers.ts";

/** Where the worker has claimed nothing yet it has no hint: an older job there must be seen too. */
export function lookingForOlder(claim: ImmediateClaim, jobs: readonly NewJob[]): ImmediateClaim {
  let { hints } = claim;
  for (let i = 0; i < claim.count; i++) {
    const { queueId, weight } = jobs[i] as NewJob;
    if (!has(hints, queueId, weight)) hints = [...hints, { queueId, weight, afterSeq: 0 }];
  }
  return hints === claim.hints ? claim : { ...claim, hints };
}

function has(hints: readonly ClaimHint[], queueId: number, weight: number): boolean {
  for (const hint of hints) if (hint.queueId === queueId && hint.weight === weight) return true;
  return false;
}

/** A local worker that may take fresh jobs straight from the flush. */
export interface LocalWorker {
  offer(jobs: readonly NewJob[]): ImmediateClaim | null;
  take(
    claim: ImmediateClaim,
    jobs: readonly (ClaimedJob & { weight: number })[],
    lastSeq: number | null,
  ): void;
  /** May runs of this type begin before their job is stored? */
  mayBegin(type: string): boolean;
  /** Instead of `take`, while the flush is being committed. */
  begin(claim: ImmediateClaim, job: ClaimedJob & { weight: number }): BegunRun;
}

export interface LocalOffer {
  readonly worker: LocalWorker;
  readonly claim: ImmediateClaim;
}

type Claimed = (ClaimedJob & { weight: number })[];

/** Reads the payloads while the flush is on its way; what is answered then says what came of it. */
export function expectClaimed(
  jobs: readonly NewJob[],
  claim: ImmediateClaim,
): (flushed: Flushed | null) => Claimed {
  const read = jobs.slice(0, claim.count).map((job) => claimedLater(job, claim.claimId));
  return (flushed) => {
    const at = flushed?.claimedAt;
    return at === undefined || at === null ? [] : read.map((claimedAt) => claimedAt(at));
  };
}
