import type { NewJob } from "./store.ts";

/** Do they differ in nothing but id and payload, and have nothing that most jobs do not have? */
export function areAlike(jobs: readonly NewJob[]): boolean {
  const [first] = jobs;
  if (first === undefined) return false;
  const { queueId, weight, maxAttempts, type, tenant } = first;
  for (const job of jobs) {
    if (job.queueId !== queueId || job.weight !== weight || job.maxAttempts !== maxAttempts)
      return false;
    if (job.type !== type || job.tenant !== tenant || hasRareColumns(job)) return false;
  }
  return true;
}

const hasRareColumns = (job: NewJob): boolean =>
  job.expiresInMs !== undefined ||
  job.maxRuntimeMs !== undefined ||
  job.correlationId !== undefined ||
  job.key !== undefined ||
  job.reference !== undefined ||
  job.meta !== undefined;
