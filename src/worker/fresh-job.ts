// A job that was claimed by the flush that stored it: as it is then, and as a text that goes with its notice.

import type { ClaimedJob } from "../domain/job.ts";
import type { HandedClaim, NewJob } from "../store/store.ts";

/** 8,000 are the most that a notice may have. */
const mostBytes = 7_000;

/** null: it is too long, and has to be read. */
export function jobText({ payload, ...others }: NewJob): string | null {
  if (payload.length > mostBytes) return null;
  const text = `${JSON.stringify(others)}\n${payload}`;
  return Buffer.byteLength(text) > mostBytes ? null : text;
}

type FreshJob = ClaimedJob & { readonly weight: number };

/** null: that is not the text of this job. */
export function parseFresh(text: string, claim: HandedClaim, at: Date): FreshJob | null {
  const end = text.indexOf("\n");
  try {
    const stored: NewJob = { ...JSON.parse(text.slice(0, end)), payload: text.slice(end + 1) };
    return stored.id === claim.jobId ? claimedAsStored(stored, claim.claimId, at) : null;
  } catch {
    return null;
  }
}

export const claimedAsStored = (job: NewJob, claimId: string, at: Date): FreshJob => ({
  id: job.id,
  token: { claimId, claimNo: 1 },
  type: job.type,
  queueId: job.queueId,
  tenant: job.tenant,
  attempt: 1,
  maxAttempts: job.maxAttempts,
  crashCount: 0,
  maxRuntimeMs: job.maxRuntimeMs ?? null,
  payload: JSON.parse(job.payload),
  correlationId: job.correlationId ?? job.id,
  idempotencyKey: job.key ?? job.id,
  reference: job.reference ?? null,
  meta: job.meta ?? {},
  timeline: [],
  createdAt: at,
  readyAt: at,
  startedAt: at,
  weight: job.weight,
});
