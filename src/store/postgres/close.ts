// What people do to jobs from outside a run: cancel and delete.

import type { JobState } from "../../domain/job-state.ts";
import type { CancelResult } from "../store.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

const taken = `id, created_at, queue_id, claim_no, weight, attempt, max_attempts, crash_count, type, tenant, payload,
      correlation_id, idempotency_key, reference, meta, timeline`;

/** Takes a waiting job out and archives it under state $2 with reason $3. */
const archiveWaiting = `waiting as (
    delete from millrace.job where id = $1 and claim_id is null returning ${taken}
  ),
  scheduled as (
    delete from millrace.scheduled_job where id = $1 returning ${taken}
  ),
  gone as (select * from waiting union all select * from scheduled),
  archived as (
    insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
      attempt, max_attempts, crash_count, type, tenant, payload, correlation_id, idempotency_key, reference, meta,
      timeline, closed_reason)
    select g.id, $2::text, g.created_at, now(), g.queue_id, g.claim_no, q.retention_days, g.weight, g.attempt,
      g.max_attempts, g.crash_count, g.type, g.tenant, g.payload, g.correlation_id, g.idempotency_key, g.reference,
      g.meta, g.timeline, $3::text
    from gone g join millrace.queue q on q.id = g.queue_id
    returning queue_id
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, removed)
    select queue_id, gen_random_uuid(), date_trunc('minute', now()), 1 from archived
  ),
  tenants_counted as (${countTenants("gone", "-", "gen_random_uuid()")})`;

// Who asks again finds that it was asked for: a row that is changed once more only gets in the way of its end.
const cancel = statement(
  "cancel_job",
  `with ${archiveWaiting},
  already as (
    select from millrace.job where id = $1 and claim_id is not null and cancel_requested
      and ($3::text is null or meta->>'cancelReason' is not null)
  ),
  flagged as (
    update millrace.job set cancel_requested = true,
      meta = case when $3::text is null then meta
        else (coalesce(meta::jsonb, '{}') || jsonb_build_object('cancelReason', $3::text))::json end
    where id = $1 and claim_id is not null
      and (not cancel_requested or ($3::text is not null and meta->>'cancelReason' is null))
    returning id, claim_id
  ),
  told as (
    update millrace.claim c set cancels = array_append(c.cancels, f.id) from flagged f where c.id = f.claim_id
    returning pg_notify($4::text, 'cancel ' || coalesce(c.lease_id::text, ''))
  )
  select (select count(*) from gone)::int as gone, (select count(*) from told)::int as told,
    ((select count(*) from flagged) + (select count(*) from already))::int as flagged`,
);

// A dead letter may be older than the history that is kept: its record is filed under today.
const remove = statement(
  "delete_job",
  `with ${archiveWaiting},
  buried as (
    delete from millrace.dead_job where id = $1 returning *
  ),
  reburied as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, correlation_id,
      idempotency_key, reference, meta, timeline, closed_reason, reprocessed_as)
    select b.id, $2::text, b.created_at, b.started_at, now(), b.claim_id, b.queue_id, b.claim_no,
      q.retention_days, b.weight, b.attempt, b.max_attempts, b.crash_count, b.type, b.tenant, b.worker, b.payload,
      b.correlation_id, b.idempotency_key, b.reference, b.meta, b.timeline, $3::text, b.reprocessed_as
    from buried b join millrace.queue q on q.id = b.queue_id
  ),
  marked as (
    update millrace.history set state = $2::text, closed_reason = $3::text
    where id = $1 and state <> $2::text returning id, tenant
  ),
  unnamed as (
    delete from millrace.unique_name where job_id in
      (select id from gone union all select id from buried union all select id from marked)
  ),
  audited as (
    insert into millrace.audit (tenant, actor, action, target, reason)
    select tenant, $4::text, 'job_delete', id::text, $3::text from
      (select id, tenant from gone union all select id, tenant from buried union all select id, tenant from marked) x
    returning 1
  )
  select count(*)::int as deleted from audited`,
);

export async function cancelJob(
  database: Database,
  id: string,
  reason: string | null,
  stateOf: (id: string) => Promise<JobState | null>,
): Promise<CancelResult> {
  // A job that changes hands between snapshot and lock shows neither as waiting nor as running: look again.
  for (;;) {
    const rows = await database.query<{ gone: number; flagged: number }>(cancel, [
      id,
      "cancelled",
      reason,
      database.channel,
    ]);
    if ((rows[0]?.gone ?? 0) > 0) return "cancelled";
    if ((rows[0]?.flagged ?? 0) > 0) return "requested";
    const state = await stateOf(id);
    if (state === null) return "unknown";
    if (state !== "ready" && state !== "running" && state !== "scheduled") return "ended";
  }
}

export async function deleteJob(
  database: Database,
  id: string,
  reason: string,
  actor: string,
): Promise<boolean> {
  const rows = await database.query<{ deleted: number }>(remove, [id, "deleted", reason, actor]);
  return (rows[0]?.deleted ?? 0) > 0;
}
