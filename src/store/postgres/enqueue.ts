// The general way in: jobs with names (idempotency keys, unique references) and delays, and every job
// enqueued inside the caller's own transaction. One statement, and a second one only to read whose a
// name is when it was taken.

import { MillraceError } from "../../domain/errors.ts";
import type { Enqueued, NewJob } from "../store.ts";
import { enqueueGeneral } from "./enqueue-general.ts";
import {
  hasOwnPlace,
  isCounted,
  labelParameters,
  laneParameters,
  newJobParameters,
} from "./job-columns.ts";
import {
  arrayText,
  foreignAnswer,
  type RunStatement,
  sparseArrayText,
  statement,
} from "./statement.ts";

const readNames = statement(
  "read_names",
  `select n.scope, n.key, n.job_id, encode(n.request_hash, 'hex') as request_hash
  from unnest($1::text::text[], $2::text::text[]) w (scope, key)
  join millrace.unique_name n on n.scope = w.scope and n.key = w.key
  where n.expires_at is null or n.expires_at >= now()`,
);

const readOwned = statement(
  "read_owned_names",
  `select scope, key, job_id from millrace.unique_name where job_id = any($1::text::uuid[])`,
);

const dropNames = statement(
  "drop_names",
  `delete from millrace.unique_name where job_id = any($1::text::uuid[])`,
);

export interface GeneralEnqueue {
  readonly flushNo: number | null;
  readonly producer: string | null;
  readonly channel: string;
  readonly notice: string | null;
  readonly jobs: readonly NewJob[];
}

export type EnqueueAnswer = Enqueued | MillraceError;

/** One answer per job, or null when the fence refused the whole flush. */
export async function enqueueJobs(
  run: RunStatement,
  request: GeneralEnqueue,
): Promise<EnqueueAnswer[] | null> {
  const { unique, twins } = separateTwins(request.jobs);
  const counted = unique.some(isCounted);
  const placed = counted || unique.some(hasOwnPlace);
  const labelled = unique.some(({ labels }) => labels !== undefined);
  const way = counted ? "counted" : placed ? "lanes" : "plain";
  const rows = await run(enqueueGeneral[way][labelled ? "labelled" : "bare"], [
    request.flushNo === null ? null : String(request.flushNo),
    request.producer,
    ...newJobParameters(unique),
    request.channel,
    request.notice,
    sparseArrayText(unique.map((job) => job.delayMs)),
    sparseArrayText(unique.map((job) => job.requestHash)),
    sparseArrayText(unique.map((job) => (job.uniqueReference === true ? "true" : null))),
    ...(placed ? laneParameters(unique) : []),
    ...(labelled ? labelParameters(unique) : []),
  ]);
  // Only the fence answers with nothing, and there is none in somebody's transaction.
  if (rows.length === 0 && request.flushNo === null) throw foreignAnswer();
  if (rows.length === 0) return null;
  const accepted = new Set(rows.map((row) => row.id as string | null));
  const refused = unique.filter((job) => !accepted.has(job.id));
  // Every id is that of a job, or null where none was accepted.
  const foreign = accepted.size - (accepted.has(null) ? 1 : 0) + refused.length - unique.length;
  if (foreign > 0) throw foreignAnswer();
  const answers = new Map<string, EnqueueAnswer>();
  for (const job of unique) answers.set(job.id, { id: job.id, existing: false });
  if (refused.length > 0) await explainRefusals(run, refused, answers);
  judgeTwins(twins, answers);
  const unjudged = request.jobs.filter((job) => !answers.has(job.id));
  if (unjudged.length > 0) {
    // Their first was refused, so they stand for themselves; the fence has let this flush in already.
    const again = { ...request, flushNo: null, producer: null, notice: null, jobs: unjudged };
    const later = (await enqueueJobs(run, again)) ?? [];
    for (const [i, job] of unjudged.entries()) if (later[i]) answers.set(job.id, later[i]);
  }
  return request.jobs.map((job) => answers.get(job.id) ?? new MillraceError("JOB_NOT_FOUND"));
}

/** Two jobs with one name in one batch: only the first goes in, the other is judged beside it. */
function separateTwins(jobs: readonly NewJob[]) {
  const first = new Map<string, NewJob>();
  const twins = new Map<NewJob, NewJob>();
  const unique: NewJob[] = [];
  for (const job of jobs) {
    const names = namesOf(job).map(({ scope, key }) => `${scope}\n${key}`);
    const twin = names.map((name) => first.get(name)).find((other) => other !== undefined);
    if (twin !== undefined) {
      twins.set(job, twin);
      continue;
    }
    for (const name of names) first.set(name, job);
    unique.push(job);
  }
  return { unique, twins };
}

function namesOf(job: NewJob): { scope: string; key: string }[] {
  const names = [];
  if (job.key !== undefined) names.push({ scope: `key:${job.tenant}`, key: job.key });
  if (job.uniqueReference === true && job.reference !== undefined) {
    names.push({ scope: referenceScope(job), key: job.reference });
  }
  return names;
}

/** What a tenant calls its items is no other tenant's business, in a shared queue either. */
const referenceScope = ({ queueId, tenant }: NewJob) => `ref:${queueId}:${tenant}`;

function judgeTwins(twins: Map<NewJob, NewJob>, answers: Map<string, EnqueueAnswer>): void {
  for (const [job, first] of twins) {
    const answer = answers.get(first.id);
    if (answer === undefined || answer instanceof MillraceError || answer.existing) continue;
    answers.set(job.id, answerBeside(job, first));
  }
}

function answerBeside(job: NewJob, first: NewJob): EnqueueAnswer {
  if (job.key === undefined || job.key !== first.key || job.tenant !== first.tenant)
    return referenceTaken(job, first.id);
  return job.requestHash === first.requestHash
    ? { id: first.id, existing: true }
    : conflict(job, first.id);
}

async function explainRefusals(
  run: RunStatement,
  refused: readonly NewJob[],
  answers: Map<string, EnqueueAnswer>,
): Promise<void> {
  const names = refused.flatMap(namesOf);
  const rows = await run(readNames, [
    arrayText(names.map((n) => n.scope)),
    arrayText(names.map((n) => n.key)),
  ]);
  const owners = new Map(rows.map((row) => [`${row.scope}\n${row.key}`, row]));
  const halfNamed: string[] = [];
  for (const job of refused) {
    const owner = job.key === undefined ? undefined : owners.get(`key:${job.tenant}\n${job.key}`);
    if (owner !== undefined && owner.job_id !== job.id) {
      const id = String(owner.job_id);
      answers.set(
        job.id,
        owner.request_hash === job.requestHash ? { id, existing: true } : conflict(job, id),
      );
      continue;
    }
    // The key was free but the reference was not: the key must not stay behind.
    if (owner !== undefined) halfNamed.push(job.id);
    const holder = owners.get(`${referenceScope(job)}\n${job.reference}`);
    answers.set(job.id, holder === undefined ? nameBusy() : referenceTaken(job, holder.job_id));
  }
  if (halfNamed.length > 0) await run(dropNames, [arrayText(halfNamed)]);
}

const conflict = (job: NewJob, existingId: string) =>
  new MillraceError(
    "IDEMPOTENCY_CONFLICT",
    `The idempotency key of this ${job.type} belongs to a different request.`,
    {
      details: { existingId, key: job.key },
    },
  );

/** Whoever had the name gave it up between our two statements: asking again will tell. */
const nameBusy = () => new MillraceError("KEY_BUSY");

const referenceTaken = (job: NewJob, existingId: unknown) =>
  new MillraceError("REFERENCE_TAKEN", "The reference is already used in this queue.", {
    details: { existingId, reference: job.reference },
  });

/** What jobs are told that were all enqueued before; null when one of them is new. */
export async function answersOfRepeats(
  run: RunStatement,
  jobs: readonly NewJob[],
): Promise<EnqueueAnswer[] | null> {
  const keyed = jobs.filter((job) => job.key !== undefined);
  if (keyed.length < jobs.length) return null;
  const rows = await run(readNames, [
    arrayText(keyed.map((job) => `key:${job.tenant}`)),
    arrayText(keyed.map((job) => job.key)),
  ]);
  const owners = new Map(rows.map((row) => [`${row.scope}\n${row.key}`, row]));
  const answers: EnqueueAnswer[] = [];
  for (const job of keyed) {
    const owner = owners.get(`key:${job.tenant}\n${job.key}`);
    if (owner === undefined) return null;
    const id = String(owner.job_id);
    const isSame = owner.request_hash === job.requestHash;
    answers.push(isSame ? { id, existing: true } : conflict(job, id));
  }
  return answers;
}

/** After a lost answer to a flush that was committed: what each job was told. */
export async function answersOfCommitted(
  run: RunStatement,
  jobs: readonly NewJob[],
): Promise<EnqueueAnswer[]> {
  const answers = new Map<string, EnqueueAnswer>();
  for (const job of jobs) answers.set(job.id, { id: job.id, existing: false });
  const rows = await run(readOwned, [arrayText(jobs.map((job) => job.id))]);
  const owned = new Set(rows.map((row) => `${row.scope}\n${row.key}\n${row.job_id}`));
  const refused = jobs.filter((job) =>
    namesOf(job).some(({ scope, key }) => !owned.has(`${scope}\n${key}\n${job.id}`)),
  );
  if (refused.length > 0) await explainRefusals(run, refused, answers);
  return jobs.map((job) => answers.get(job.id) ?? new MillraceError("JOB_NOT_FOUND"));
}

/** A half-named job must be undone, and a twin judged, in the same transaction. */
export const needsTransaction = (jobs: readonly NewJob[]): boolean =>
  jobs.some((job) => job.key !== undefined && job.uniqueReference === true) ||
  separateTwins(jobs).twins.size > 0;
