// Acting on everything that a filter finds. The matching jobs are collected first, so that their number
// can be confirmed, and then taken one after the other; what changed its state meanwhile is passed over.

import type { JobPage, JobSummary } from "../api/answers.ts";
import { codeOf, get, type Query, send } from "../api/service.ts";

export const mostAtOnce = 1_000;
const inParallel = 4;
const mostPages = 100;

export interface Matching {
  readonly jobs: readonly JobSummary[];
  /** There are more than are dealt with at once. */
  readonly isMore: boolean;
}

export async function collect(query: Query): Promise<Matching> {
  const jobs: JobSummary[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < mostPages; pages++) {
    const page = await get<JobPage>("/api/jobs", { ...query, limit: 200, cursor });
    jobs.push(...page.jobs);
    if (jobs.length > mostAtOnce) return { jobs: jobs.slice(0, mostAtOnce), isMore: true };
    if (page.next_cursor === null) return { jobs, isMore: false };
    cursor = page.next_cursor;
  }
  return { jobs, isMore: true };
}

export const actionable = {
  cancel: new Set(["ready", "scheduled", "running"]),
  reprocess: new Set(["dead", "cancelled", "expired"]),
} as const;

export type BulkAction = keyof typeof actionable;

const calls: Record<BulkAction, (id: string, reason: string) => Promise<unknown>> = {
  cancel: (id, reason) => send("POST", `/api/jobs/${id}/cancel`, reason === "" ? {} : { reason }),
  reprocess: (id, notes) => send("POST", `/api/jobs/${id}/retry`, { notes }),
};

/** How many were done; throws what was not about one job alone. */
export async function actOn(
  action: BulkAction,
  jobs: readonly JobSummary[],
  reason: string,
): Promise<number> {
  const waiting = [...jobs];
  let done = 0;
  const taker = async () => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      try {
        await calls[action](job.id, reason);
        done += 1;
      } catch (error) {
        if (!/^(?:ILLEGAL_TRANSITION|JOB_NOT_FOUND)$/.test(codeOf(error))) {
          waiting.length = 0;
          throw error;
        }
      }
    }
  };
  await Promise.all(Array.from({ length: inParallel }, taker));
  return done;
}
