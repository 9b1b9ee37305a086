// Dead letters: list, reprocess as a new linked job, discard. Every repair has a reason and an audit entry.

import { MillraceError } from "../../domain/errors.ts";
import type { Job } from "../../domain/job.ts";
import type { DeadLetterFilter, Repair, Reprocessed } from "../store.ts";
import type { Database } from "./database.ts";
import { payloadOf } from "./long-payload.ts";
import { findJobs } from "./read.ts";
import { statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

const list = statement(
  "list_dead",
  `select d.id from millrace.dead_job d join millrace.queue q on q.id = d.queue_id
  where d.state = 'dead' and d.reprocessed_as is null
    and ($1::uuid[] is null or d.id = any($1::uuid[])) and ($2::text is null or q.name = $2::text)
    and ($3::text is null or d.tenant = $3::text) and ($4::text is null or d.error_fingerprint = $4::text)
    and ($5::text is null or d.type = $5::text)
  order by d.finished_at, d.id limit $6::int`,
);

const discard = statement(
  "discard_dead",
  `with discarded as (
    update millrace.dead_job set state = 'discarded', closed_at = now(), closed_reason = $2::text
    where id = $1 and state = 'dead' and reprocessed_as is null returning id, tenant
  ),
  audited as (
    insert into millrace.audit (tenant, actor, action, target, reason)
    select tenant, $3::text, 'job_dlq_discard', id::text, $2::text from discarded
  )
  select id from discarded`,
);

const accepts = (table: string) =>
  `(select q.is_active from millrace.queue q where q.id = ${table}.queue_id)`;

// $1 old id, $2 new id, $3 reason, $4 actor, $5 channel. The old job stays where it is, marked.
const reprocess = statement(
  "reprocess_job",
  `with old_dead as (
    update millrace.dead_job set reprocessed_as = $2::uuid, closed_at = now(), closed_reason = $3::text
    where id = $1::uuid and state = 'dead' and reprocessed_as is null and ${accepts("dead_job")}
    returning id, queue_id, weight, max_attempts, type, tenant, payload, correlation_id, idempotency_key, reference, meta, max_runtime_ms, seq
  ),
  old_history as (
    update millrace.history set reprocessed_as = $2::uuid, closed_reason = $3::text
    where id = $1::uuid and state in ('cancelled', 'expired') and reprocessed_as is null and ${accepts("history")}
    returning id, queue_id, weight, max_attempts, type, tenant, payload, correlation_id, idempotency_key, reference, meta, null::int as max_runtime_ms, null::bigint as seq
  ),
  old as (select * from old_dead union all select * from old_history),
  requested as (
    insert into millrace.audit (tenant, actor, action, target, reason)
    select tenant, $4::text, 'job_dlq_reprocess_requested', $1::text, $3::text from old returning id
  ),
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, max_runtime_ms, type, tenant,
      payload, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    select $2::uuid, coalesce(seq, nextval('millrace.flush_seq') * 1024), now(), now(), queue_id, weight, max_attempts, max_runtime_ms, type,
      tenant, ${payloadOf("old.")}, coalesce(correlation_id, $1::text),
      coalesce(idempotency_key, $1::text) || '_retry_' || extract(epoch from now())::bigint,
      reference, (coalesce(meta::jsonb, '{}') || jsonb_build_object('reprocessOf', $1::text))::json,
      coalesce((select s.slot from millrace.tenant_slot s join millrace.queue q on q.id = s.queue_id and q.fairness
        where s.queue_id = old.queue_id and s.tenant = old.tenant), 0),
      coalesce(millrace.lane_of(tenant, meta->>'orderingKey', true), millrace.lane_of(tenant, meta->>'limitKey', false), 0)
    from old
    returning id, queue_id, tenant, idempotency_key, meta
  ),
  renamed as (
    update millrace.unique_name n set job_id = $2::uuid where n.job_id = $1::uuid and n.scope like 'ref:%'
      and exists (select from inserted)
  ),
  relabelled as (
    insert into millrace.job_label (tenant, name, value, job_id)
    select l.tenant, l.name, l.value, i.id from inserted i join millrace.job_label l on l.job_id = $1::uuid
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, enqueued)
    select queue_id, gen_random_uuid(), date_trunc('minute', now()), 1 from inserted
  ),
  tenants_counted as (${countTenants("inserted", "+", "gen_random_uuid()")}),
  succeeded as (
    insert into millrace.audit (tenant, actor, action, target, reason, details)
    select i.tenant, $4::text, 'job_dlq_reprocess_success', $1::text, $3::text, json_build_object('new_job_id', i.id)
    from inserted i, requested
  )
  select id, idempotency_key, pg_notify($5::text, 'ready ' || queue_id) from inserted`,
);

export async function listDeadLetters(
  database: Database,
  filter: DeadLetterFilter,
  limit: number,
): Promise<Job[]> {
  const rows = await database.query<{ id: string }>(list, [
    filter.ids ?? null,
    filter.queue ?? null,
    filter.tenant ?? null,
    filter.fingerprint ?? null,
    filter.type ?? null,
    limit,
  ]);
  const ids = rows.map((row) => row.id);
  const jobs = new Map((await findJobs(database, ids)).map((job) => [job.id, job]));
  return ids.flatMap((id) => jobs.get(id) ?? []);
}

export async function reprocessJob(
  database: Database,
  id: string,
  newId: string,
  repair: Repair,
): Promise<Reprocessed> {
  const rows = await database.query<{ id: string; idempotency_key: string }>(reprocess, [
    id,
    newId,
    repair.reason,
    repair.actor,
    database.channel,
  ]);
  const row = rows[0];
  if (row === undefined) throw await refusal(database, id, "reprocessed");
  return { id: row.id, idempotencyKey: row.idempotency_key };
}

export async function discardJob(database: Database, id: string, repair: Repair): Promise<void> {
  const rows = await database.query(discard, [id, repair.reason, repair.actor]);
  if (rows.length === 0) throw await refusal(database, id, "discarded");
}

/** What could have been reprocessed was refused by its queue. */
const repairable: readonly string[] = ["dead", "cancelled", "expired"];

async function refusal(database: Database, id: string, wanted: string): Promise<MillraceError> {
  const job = (await findJobs(database, [id]))[0];
  if (job === undefined) return new MillraceError("JOB_NOT_FOUND", `There is no job ${id}.`);
  const isRepairable = job.reprocessedAs === null && repairable.includes(job.state);
  if (wanted === "reprocessed" && isRepairable)
    return new MillraceError("QUEUE_INACTIVE", `Queue "${job.queue}" does not accept jobs.`);
  const why =
    job.reprocessedAs === null
      ? `it is ${job.state}`
      : `it was reprocessed as ${job.reprocessedAs}`;
  return new MillraceError("ILLEGAL_TRANSITION", `Job ${id} cannot be ${wanted}: ${why}.`, {
    details: { state: job.state, reprocessedAs: job.reprocessedAs },
  });
}
