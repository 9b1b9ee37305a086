// Reading one job wherever it lives by now.

import type { Job, JobMeta } from "../../domain/job.ts";
import type { JobState } from "../../domain/job-state.ts";
import { entryFor, type RunOutcome, type Timeline } from "../../domain/timeline.ts";
import { type Token, tokenText } from "../../domain/token.ts";
import type { Reader } from "./database.ts";
import { payloadOf } from "./long-payload.ts";
import { statement } from "./statement.ts";

const common = `id, type, queue_id, tenant, weight, attempt, max_attempts, crash_count, ${payloadOf()} as payload,
      correlation_id, idempotency_key, reference, meta, timeline, created_at, claim_no`;

const places = `select ${common}, case when claim_id is null then 'ready' else 'running' end as state,
      null::timestamptz as due_at, started_at, null::timestamptz as finished_at, expires_at, cancel_requested,
      claim_id, null as worker, null::json as result, null as error_class, null as error_fingerprint,
      null as error_message, null as error_stack, null::uuid as reprocessed_as, null as closed_reason
    from millrace.job where id = any($1::uuid[])
    union all
    select ${common}, 'scheduled', due_at, null, null, expires_at, false, null, null, null, null, null, null, null, null, null
    from millrace.scheduled_job where id = any($1::uuid[])
    union all
    select ${common}, state, null, started_at, finished_at, expires_at, false, claim_id, worker, null,
      error_class, error_fingerprint, error_message, error_stack, reprocessed_as, closed_reason
    from millrace.dead_job where id = any($1::uuid[])
    union all
    select ${common}, state, null, started_at, finished_at, null, false, claim_id, worker, result,
      null, null, null, null, reprocessed_as, closed_reason
    from millrace.history where id = any($1::uuid[])`;

const readJobs = statement(
  "read_jobs",
  `select j.*, q.name as queue from (${places}) j join millrace.queue q on q.id = j.queue_id`,
);

const readByKey = statement(
  "read_by_key",
  `select job_id from millrace.unique_name where scope = 'key:' || $1::text and key = $2::text`,
);

interface JobRow {
  id: string;
  type: string;
  queue: string;
  tenant: string;
  weight: number;
  attempt: number;
  max_attempts: number;
  crash_count: number;
  payload: unknown;
  correlation_id: string | null;
  idempotency_key: string | null;
  reference: string | null;
  meta: JobMeta | null;
  timeline: Timeline | null;
  created_at: Date;
  claim_no: number;
  state: JobState;
  due_at: Date | null;
  started_at: Date | null;
  finished_at: Date | null;
  expires_at: Date | null;
  cancel_requested: boolean;
  claim_id: string | null;
  worker: string | null;
  result: unknown;
  error_class: NonNullable<Job["error"]>["class"] | null;
  error_fingerprint: string | null;
  error_message: string | null;
  error_stack: string | null;
  reprocessed_as: string | null;
  closed_reason: string | null;
}

/** A job between two tables is in neither for a reader of two snapshots, so one statement reads them all. */
export async function findJobs(database: Reader, ids: readonly string[]): Promise<Job[]> {
  const rows = await database.query<JobRow>(readJobs, [ids]);
  return rows.map(toJob);
}

export async function findJobByKey(
  database: Reader,
  tenant: string,
  key: string,
): Promise<string | null> {
  const rows = await database.query<{ job_id: string }>(readByKey, [tenant, key]);
  return rows[0]?.job_id ?? null;
}

/** How the run under this token ended, if it has: what a repeated settle asks. */
export async function settledOutcomes(
  database: Reader,
  tokens: readonly { id: string; token: Token }[],
): Promise<Map<string, RunOutcome>> {
  const jobs = await findJobs(
    database,
    tokens.map(({ id }) => id),
  );
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const outcomes = new Map<string, RunOutcome>();
  for (const { id, token } of tokens) {
    const entry = entryFor(byId.get(id)?.timeline ?? [], token);
    if (entry !== undefined) outcomes.set(id, entry.outcome);
  }
  return outcomes;
}

function toJob(row: JobRow): Job {
  return {
    id: row.id,
    type: row.type,
    queue: row.queue,
    tenant: row.tenant,
    state: row.state,
    weight: row.weight,
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    crashCount: row.crash_count,
    payload: row.payload,
    result: row.result ?? null,
    error: toError(row),
    correlationId: row.correlation_id ?? row.id,
    idempotencyKey: row.idempotency_key ?? row.id,
    reference: row.reference,
    meta: row.meta ?? {},
    timeline: timelineOf(row),
    cancelRequested: row.cancel_requested,
    createdAt: row.created_at,
    dueAt: row.due_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    expiresAt: row.expires_at,
    reprocessedAs: row.reprocessed_as,
    closedReason: row.closed_reason,
  };
}

function toError(row: JobRow): Job["error"] {
  if (row.error_class === null) return null;
  const error = {
    class: row.error_class,
    fingerprint: row.error_fingerprint ?? "",
    message: row.error_message ?? "",
  };
  return row.error_stack === null ? error : { ...error, stack: row.error_stack };
}

/** A plain completion writes no entry of its own: the history row already holds everything it would say. */
function timelineOf(row: JobRow): Timeline {
  const entries = row.timeline ?? [];
  const endedByCompletion =
    row.worker !== null && row.claim_id !== null && row.error_class === null;
  if (!endedByCompletion || row.started_at === null || row.finished_at === null) return entries;
  const token = tokenText({ claimId: row.claim_id ?? "", claimNo: row.claim_no });
  if (entries.some((entry) => entry.token === token)) return entries;
  const last = {
    token,
    attempt: row.attempt,
    worker: row.worker ?? "",
    startedAt: row.started_at.toISOString(),
    endedAt: row.finished_at.toISOString(),
    outcome: "completed" as const,
  };
  return [...entries, last];
}
