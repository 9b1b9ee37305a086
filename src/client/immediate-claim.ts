// Jobs that a local worker claims in the very flush that stores them.

import type { ClaimedJob } from "../domain/job.ts";
import type { Flushed, ImmediateClaim, NewJob } from "../store/store.ts";
import { claimedAsStored } from "../worker/fresh-job.ts";

/** Where the worker has claimed nothing yet it has no hint: an older job there must be seen too. */
export function lookingForOlder(claim: ImmediateClaim, jobs: readonly NewJob[]): ImmediateClaim {
  const hints = [...claim.hints];
  for (const { queueId, weight } of jobs.slice(0, claim.count)) {
    if (!hints.some((hint) => hint.queueId === queueId && hint.weight === weight))
      hints.push({ queueId, weight, afterSeq: 0 });
  }
  return { ...claim, hints };
}

export function claimedJobs(
  jobs: readonly NewJob[],
  claim: ImmediateClaim,
  flushed: Flushed | null,
): (ClaimedJob & { weight: number })[] {
  const startedAt = flushed?.claimedAt;
  if (startedAt === undefined || startedAt === null) return [];
  return jobs.slice(0, claim.count).map((job) => claimedAsStored(job, claim.claimId, startedAt));
}
