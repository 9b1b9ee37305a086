// Jobs that were claimed by the flush that stored them: as they are then, and as a text that goes with their
// notice.

import type { ClaimedJob, JobMeta, Place } from "../domain/job.ts";
import type { Timeline } from "../domain/timeline.ts";
import { areLong } from "../store/long-payloads.ts";
import type { FreshJobs, HandedClaim, NewJob } from "../store/store.ts";

/** 8,000 are the most that a notice may have, with what the flush adds. */
const mostBytes = 7_700;
const mostLetters = 7_000;

/** One job, whatever it is like; none: it is too long, and has to be read. */
export function jobText({ payload, ...others }: NewJob): string[] {
  if (payload.length > mostLetters) return [];
  const text = `${JSON.stringify(others)}\n${payload}`;
  return Buffer.byteLength(text) > mostBytes ? [] : [text];
}

/** Jobs that differ in id and payload only; null: they are too long. */
export function jobTexts(jobs: readonly NewJob[], letters = mostLetters): string[] | null {
  const [first] = jobs;
  if (first === undefined || areLong(jobs)) return null;
  const { type, tenant, queueId, weight, maxAttempts } = first;
  const common = JSON.stringify({ type, tenant, queueId, weight, maxAttempts });
  const texts: string[] = [];
  for (let from = 0; from < jobs.length; ) {
    const to = endOfText(jobs, from, letters - common.length);
    if (to === from) return null;
    const text = textOf(jobs, common, from, to);
    // Letters have up to three bytes.
    if (Buffer.byteLength(text) > mostBytes)
      return letters === mostLetters ? jobTexts(jobs, mostLetters / 3) : null;
    texts.push(text);
    from = to;
  }
  return texts;
}

const idLength = 36;

function endOfText(jobs: readonly NewJob[], from: number, letters: number): number {
  let length = 0;
  for (let to = from; to < jobs.length; to++) {
    length += (jobs[to]?.payload.length ?? 0) + idLength + 1;
    if (length > letters) return to;
  }
  return jobs.length;
}

function textOf(jobs: readonly NewJob[], common: string, from: number, to: number): string {
  let ids = "";
  let payloads = "";
  for (let i = from; i < to; i++) {
    const { id, payload } = jobs[i] as NewJob;
    ids += id;
    payloads += i === from ? payload : `,${payload}`;
  }
  return `${common}\n${ids}\n[${payloads}]`;
}

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
  const jobs: FreshJob[] = [];
  for (const text of texts) {
    const [common = "", ids = "", payloads = ""] = text.split("\n", 3);
    const job = JSON.parse(common);
    const all: unknown[] = JSON.parse(payloads);
    if (ids.length !== all.length * idLength) return null;
    for (const [i, payload] of all.entries()) {
      const id = ids.slice(i * idLength, (i + 1) * idLength);
      const place = { tid: places[jobs.length] ?? "", seq: seq + jobs.length };
      jobs.push(claimedWith(id, job, payload, claimId, at, place));
    }
  }
  return jobs.length === places.length ? jobs : null;
}

const claimedAsStored = (job: NewJob, claimId: string, at: Date): FreshJob =>
  claimedLater(job, claimId)(at);

/** All but the time, which is told with the answer. */
export function claimedLater(job: NewJob, claimId: string): (at: Date) => FreshJob {
  const payload = JSON.parse(job.payload);
  return (at) => claimedWith(job.id, job, payload, claimId, at, undefined);
}

const noMeta: JobMeta = Object.freeze({});
const noTimeline: Timeline = Object.freeze([]);

const claimedWith = (
  id: string,
  job: Omit<NewJob, "id" | "payload">,
  payload: unknown,
  claimId: string,
  at: Date,
  place: Place | undefined,
): FreshJob => ({
  id,
  place,
  token: { claimId, claimNo: 1 },
  type: job.type,
  queueId: job.queueId,
  tenant: job.tenant,
  attempt: 1,
  maxAttempts: job.maxAttempts,
  crashCount: 0,
  maxRuntimeMs: job.maxRuntimeMs ?? null,
  payload,
  correlationId: job.correlationId ?? id,
  idempotencyKey: job.key ?? id,
  reference: job.reference ?? null,
  meta: job.meta ?? noMeta,
  timeline: noTimeline,
  createdAt: at,
  readyAt: at,
  startedAt: at,
  weight: job.weight,
});
