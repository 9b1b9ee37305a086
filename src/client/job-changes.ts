// What becomes of a new job on its way in, and what it needs there.

import { createHash } from "node:crypto";
import { MillraceError } from "../domain/errors.ts";
import type { TraceContext } from "../runtime/tracing.ts";
import type { NewJob, Transaction } from "../store/store.ts";

export const traced = (job: NewJob, carried: TraceContext | undefined): NewJob =>
  carried === undefined ? job : { ...job, meta: { ...job.meta, ...carried } };

/** Under one key, who asks for something else besides makes a different request. */
export const asking = (job: NewJob, asks: string | undefined): NewJob =>
  asks === undefined || job.requestHash === undefined
    ? job
    : {
        ...job,
        requestHash: createHash("sha256").update(`${job.requestHash}\n${asks}`).digest("hex"),
      };

/** Not for the fast way in, which writes jobs and nothing beside them. */
export const needsNames = ({ key, delayMs, uniqueReference, labels }: NewJob): boolean =>
  key !== undefined || delayMs !== undefined || uniqueReference === true || labels !== undefined;

export const delayed = (job: NewJob, ms: number): NewJob =>
  ms === 0 ? job : { ...job, delayMs: Math.max(job.delayMs ?? 0, ms) };

/** Jobs of one call are stored together: in one transaction of the caller's, or in ours. */
export function onlyTransaction(
  transactions: ReadonlySet<Transaction | undefined>,
): Transaction | undefined {
  if (transactions.size > 1) {
    const message = "All jobs of one enqueueMany have the same tx, or none has one.";
    throw new MillraceError("OPTION_INVALID", message);
  }
  return [...transactions][0];
}
