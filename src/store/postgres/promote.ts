// Due jobs become ready, expired ones end. Any number of processes may do this at once.

import type { Promoted } from "../store.ts";
import { type Runner, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

// A job that was there when a process died goes to its queue's suspect lane (−1), unless it has a key. One
// with a key that has run before comes back to its place.
const promote = statement(
  "promote_due",
  `with due as (
    delete from millrace.scheduled_job s
    where s.ctid = any (array(
      select ctid from millrace.scheduled_job where due_at <= now()
      order by due_at limit $1::int for update skip locked))
    returning s.*
  ),
  base as (select nextval('millrace.flush_seq') * 1024 as base where exists (select from due)),
  made_ready as (
    insert into millrace.job (id, seq, created_at, ready_at, expires_at, queue_id, tenant_slot, lane, claim_no,
      max_runtime_ms, weight, attempt, max_attempts, crash_count, type, tenant, payload, correlation_id,
      idempotency_key, reference, meta, timeline)
    select id, coalesce(seq, base + row_number() over (order by due_at, id)), created_at, now(), expires_at, queue_id, tenant_slot,
      case when crash_count > 0 and lane = 0 then -1 else lane end, claim_no, max_runtime_ms, weight, attempt, max_attempts,
      crash_count, type, tenant, payload, correlation_id, idempotency_key, reference, meta, timeline
    from due, base
    returning queue_id
  )
  select (select count(*) from due)::int as promoted,
    (select json_agg(distinct queue_id) from made_ready) as queues,
    (select json_agg(round(extract(epoch from now() - due_at) * 1000)) from due) as lateness_ms,
    (select pg_notify(@channel, 'ready ' || string_agg(distinct queue_id::text, ',')) from made_ready having count(*) > 0)`,
);

const nextDue = statement(
  "next_due",
  `select (extract(epoch from due_at - now()) * 1000)::float8 as wait_ms
  from millrace.scheduled_job order by due_at limit 1`,
);

const expire = statement(
  "expire_due",
  `with late_ready as (
    delete from millrace.job j
    where j.ctid = any (array(
      select ctid from millrace.job where expires_at < now() and claim_id is null
      order by expires_at limit $1::int for update skip locked))
    returning id, created_at, queue_id, claim_no, weight, attempt, max_attempts, crash_count, type, tenant, payload,
      correlation_id, idempotency_key, reference, meta, timeline
  ),
  late_scheduled as (
    delete from millrace.scheduled_job s
    where s.ctid = any (array(
      select ctid from millrace.scheduled_job where expires_at < now()
      order by expires_at limit $1::int for update skip locked))
    returning id, created_at, queue_id, claim_no, weight, attempt, max_attempts, crash_count, type, tenant, payload,
      correlation_id, idempotency_key, reference, meta, timeline
  ),
  late as (select * from late_ready union all select * from late_scheduled),
  archived as (
    insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
      attempt, max_attempts, crash_count, type, tenant, payload, correlation_id, idempotency_key, reference, meta, timeline)
    select l.id, 'expired', l.created_at, now(), l.queue_id, l.claim_no, q.retention_days, l.weight, l.attempt,
      l.max_attempts, l.crash_count, l.type, l.tenant, l.payload, l.correlation_id, l.idempotency_key, l.reference,
      l.meta, l.timeline
    from late l join millrace.queue q on q.id = l.queue_id
    returning queue_id
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, removed)
    select queue_id, $2::uuid, date_trunc('minute', now()), count(*) from archived group by queue_id
    on conflict (queue_id, process, minute) do update set removed = queue_count.removed + excluded.removed
  ),
  tenants_counted as (${countTenants("late", "-", "$2::uuid")})
  select count(*)::int as expired from late`,
);

type PromotedRow = { promoted: number; queues: number[] | null; lateness_ms: number[] | null };

export async function promoteDue(runner: Runner, limit: number): Promise<Promoted> {
  const [row] = await runner.query<PromotedRow>(promote, [String(limit)]);
  const latenessMs = row?.lateness_ms ?? [];
  return { promoted: row?.promoted ?? 0, queueIds: row?.queues ?? [], latenessMs };
}

/** Milliseconds until the next job is due; null when none waits. */
export async function waitForDue(runner: Runner): Promise<number | null> {
  const rows = await runner.query<{ wait_ms: number }>(nextDue);
  return rows[0] === undefined ? null : Math.max(0, rows[0].wait_ms);
}

export async function expireDue(runner: Runner, limit: number, process: string): Promise<number> {
  const rows = await runner.query<{ expired: number }>(expire, [String(limit), process]);
  return rows[0]?.expired ?? 0;
}
