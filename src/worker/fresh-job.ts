// Jobs that were claimed by the flush that stored them, as they are then: in the process that stored them, and out of
// the notice for a worker elsewhere.

import type { ClaimedJob } from "../domain/job.ts";
import type { FreshJobs, HandedClaim, NewJob } from "../store/store.ts";
import { type AlikeJob, alikeOf, LongJob, noMeta, noTimeline, ShortJob } from "./alike-jobs.ts";
import { idLength } from "./job-texts.ts";

export type FreshJob = ClaimedJob & { readonly weight: number };

/** null: those are not the texts of this claim's jobs. */
export function parseFresh({ claimId, jobId, fresh }: HandedClaim): FreshJob[] | null {
  if (fresh === undefined) return null;
  const at = new Date(fresh.at * 1_000);
  try {
    return jobId === null ? parseSeveral(claimId, fresh, at) : parseOne(claimId, jobId, fresh, at);
  } catch {
    return null;
  }
}

function parseOne(claimId: string, jobId: string, { texts }: FreshJobs, at: Date) {
  const [text = ""] = texts;
  const end = text.indexOf("\n");
  const stored: NewJob = { ...JSON.parse(text.slice(0, end)), payload: text.slice(end + 1) };
  return stored.id === jobId ? [claimedAsStored(stored, claimId, at)] : null;
}

function parseSeveral(claimId: string, { texts, tids, seq }: FreshJobs, at: Date) {
  const places = tids?.split(";") ?? [];
  const jobs: AlikeJob[] = [];
  for (const text of texts) {
    const [common = "", ids = "", payloads = ""] = text.split("\n", 3);
    // They are elsewhere.
    if (payloads === "") return null;
    const alike = alikeOf(common, claimId, at);
    const all: unknown[] = JSON.parse(payloads);
    if (ids.length !== all.length * idLength) return null;
    for (const [i, payload] of all.entries()) {
      const id = ids.slice(i * idLength, (i + 1) * idLength);
      const n = jobs.length;
      jobs.push(new ShortJob(id, places[n] ?? "", seq + n, alike, payload));
    }
  }
  return jobs.length === places.length ? jobs : null;
}

const areIds = /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})+$/;

/** Jobs whose payloads have to be read; null: they have come along, or it is not told which jobs they are. */
export function namedIn({ jobId, fresh }: HandedClaim): string[] | null {
  if (jobId !== null || fresh === undefined) return null;
  const all: string[] = [];
  for (const text of fresh.texts) {
    const [, ids = "", payloads] = text.split("\n", 3);
    if (!areIds.test(ids) || payloads !== undefined) return null;
    for (let i = 0; i < ids.length; i += idLength) {
      const id = ids.slice(i, i + idLength);
      if (id <= (all.at(-1) ?? "")) return null;
      all.push(id);
    }
  }
  return all;
}

/** The jobs with what was found; null: that is not all of them, or it is not told what they have in common. */
export function withPayloads(
  { claimId, fresh }: HandedClaim,
  ids: readonly string[],
  payloads: readonly string[],
): AlikeJob[] | null {
  const places = fresh?.tids?.split(";") ?? [];
  if (fresh === undefined || ids.length !== payloads.length || ids.length !== places.length)
    return null;
  const [common = ""] = fresh.texts[0]?.split("\n", 1) ?? [];
  try {
    const alike = alikeOf(common, claimId, new Date(fresh.at * 1_000));
    return ids.map(
      (id, i) => new LongJob(id, places[i] ?? "", fresh.seq + i, alike, payloads[i] ?? ""),
    );
  } catch {
    return null;
  }
}

const claimedAsStored = (job: NewJob, claimId: string, at: Date): FreshJob =>
  claimedLater(job, claimId)(at);

/** All but the time, which is told with the answer. */
export function claimedLater(job: NewJob, claimId: string): (at: Date) => FreshJob {
  const payload = JSON.parse(job.payload);
  return (at) => claimedWith(job, payload, claimId, at);
}

const claimedWith = (job: NewJob, payload: unknown, claimId: string, at: Date): FreshJob => ({
  id: job.id,
  token: { claimId, claimNo: 1 },
  type: job.type,
  queueId: job.queueId,
  tenant: job.tenant,
  attempt: 1,
  maxAttempts: job.maxAttempts,
  crashCount: 0,
  maxRuntimeMs: job.maxRuntimeMs ?? null,
  payload,
  correlationId: job.correlationId ?? job.id,
  idempotencyKey: job.key ?? job.id,
  reference: job.reference ?? null,
  meta: job.meta ?? noMeta,
  timeline: noTimeline,
  createdAt: at,
  readyAt: at,
  startedAt: at,
  weight: job.weight,
});
