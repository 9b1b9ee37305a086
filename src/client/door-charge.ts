// A token is the price of a job that is stored. Repeats and refusals store nothing.

import { type ErrorCode, MillraceError } from "../domain/errors.ts";
import type { Enqueued } from "../store/store.ts";

/** Said before anything is stored, of the call as a whole. After other errors nobody knows. */
const refusals: ReadonlySet<ErrorCode> = new Set([
  "IDEMPOTENCY_CONFLICT",
  "REFERENCE_TAKEN",
  "QUEUE_FULL",
  "TENANT_FULL",
  "QUEUE_INACTIVE",
  "KEY_BUSY",
  "STOPPED",
]);

/** A larger call is stored in several parts, and some of them may be there when another is refused. */
const mostTogether = 1_000;

/** Those of a call's jobs that were surely not stored, by the answers or by the error it ended with. */
export function unstored<Job>(
  jobs: readonly Job[],
  ended: readonly Enqueued[] | unknown,
): readonly Job[] {
  if (Array.isArray(ended)) return jobs.filter((_, i) => ended[i]?.existing === true);
  const isRefusal = ended instanceof MillraceError && refusals.has(ended.code);
  return isRefusal && jobs.length <= mostTogether ? jobs : [];
}
