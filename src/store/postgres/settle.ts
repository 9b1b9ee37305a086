// Every end of a run but the plain completion: retry, snooze, release, cancel-ack, fail; and the same
// ends decided by the reclaimer for runs whose lease is over. One statement, fenced by the token.

import type { Settled, Settlement } from "../store.ts";
import { rememberDead } from "./lapsed.ts";
import { announceRaised, raiseDeaths } from "./notifications.ts";
import { type Runner, type RunStatement, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";
import { standing, untilGone } from "./until-gone.ts";

const input = `input as materialized (
    select * from json_to_recordset($1::json) as i (id uuid, claim_id uuid, claim_no int, kind text,
      delay_ms bigint, charged boolean, error_class text, fingerprint text, message text, stack text, timeline json)
  )`;

// LATERAL with LIMIT fixes the join order, whatever the planner believes about the size of `job`.
// Somebody who was asked to cancel does not come back. $2: worker, $3: process.
export const moveEnded = `current as materialized (
    select i.*, found.tid from allowed i cross join lateral (
      select j.ctid as tid from millrace.job j
      where j.id = i.id and j.claim_id = i.claim_id and j.claim_no = i.claim_no limit 1
    ) found
  ),
  ended as (
    delete from millrace.job j using current i
    where j.ctid = i.tid and j.claim_id = i.claim_id and (i.kind <> 'released' or j.cancel_requested)
    returning j.*, i.delay_ms, i.charged, i.error_class, i.fingerprint, i.message, i.stack,
      coalesce(i.timeline, j.timeline) as new_timeline,
      case when j.cancel_requested and i.kind in ('retried', 'snoozed', 'released') then 'cancelled' else i.kind end as kind,
      case when i.kind in ('snoozed', 'released') then j.attempt - 1 else j.attempt end as new_attempt,
      j.crash_count + case when i.charged then 1 else 0 end as new_crash_count
  ),
  freed as (
    update millrace.job j
    set claim_id = null, started_at = null, attempt = j.attempt - 1, timeline = i.timeline
    from current i
    where j.ctid = i.tid and j.claim_id = i.claim_id and i.kind = 'released' and not j.cancel_requested
    returning j.id, j.queue_id
  ),
  delayed as (
    insert into millrace.scheduled_job (id, due_at, created_at, expires_at, queue_id, tenant_slot, lane, claim_no,
      max_runtime_ms, weight, attempt, max_attempts, crash_count, type, tenant, payload, correlation_id,
      idempotency_key, reference, meta, timeline, seq)
    select id, now() + delay_ms * interval '1 ms', created_at, expires_at, queue_id, tenant_slot, lane, claim_no,
      max_runtime_ms, weight, new_attempt, max_attempts, new_crash_count, type, tenant, payload, correlation_id,
      idempotency_key, reference, meta, new_timeline, case when lane > 1 then seq end
    from ended where kind in ('retried', 'snoozed')
  ),
  buried as (
    insert into millrace.dead_job (id, created_at, started_at, finished_at, expires_at, queue_id, claim_id, claim_no,
      max_runtime_ms, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, correlation_id,
      idempotency_key, reference, meta, timeline, error_class, error_fingerprint, error_message, error_stack,
      lane, seq)
    select id, created_at, started_at, now(), expires_at, queue_id, claim_id, claim_no,
      max_runtime_ms, weight, new_attempt, max_attempts, new_crash_count, type, tenant, $2::text, payload, correlation_id,
      idempotency_key, reference, meta, new_timeline, error_class, fingerprint, message, stack,
      lane, case when lane > 1 then seq end
    from ended where kind = 'dead'
  ),
  archived as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload,
      correlation_id, idempotency_key, reference, meta, timeline, closed_reason)
    select e.id, 'cancelled', e.created_at, e.started_at, now(), e.claim_id, e.queue_id, e.claim_no,
      q.retention_days, e.weight, e.new_attempt, e.max_attempts, e.new_crash_count, e.type, e.tenant, $2::text, e.payload,
      e.correlation_id, e.idempotency_key, e.reference, e.meta, e.new_timeline,
      e.meta->>'cancelReason'
    from ended e join millrace.queue q on q.id = e.queue_id where e.kind = 'cancelled'
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, dead, removed, retried)
    select queue_id, $3::uuid, date_trunc('minute', now()),
      count(*) filter (where kind = 'dead'), count(*) filter (where kind = 'cancelled'),
      count(*) filter (where kind = 'retried')
    from ended group by queue_id
    on conflict (queue_id, process, minute) do update
      set dead = queue_count.dead + excluded.dead, removed = queue_count.removed + excluded.removed,
        retried = queue_count.retried + excluded.retried
  )`;

/** Those of the ended that counted for their tenants do no longer. */
export const leftTenants = `tenants_counted as (
    ${countTenants("(select * from ended where kind in ('dead', 'cancelled'))", "-", "$3::uuid")}
  )`;

// Given back in its old place, a job is behind the hints of everybody: they are told to scan.
const result = `select id, kind from ended
  union all select id, 'released' from freed
  union all select null, pg_notify(@channel, 'late ' || string_agg(distinct queue_id::text, ','))::text
    from freed having count(*) > 0`;

// Only a batch with a death in it pays for telling of it; a retry runs the statement without.
const heldMoved = `with ${input}, allowed as (select * from input), ${moveEnded}`;
const settleHeld = {
  plain: statement("settle_held", `${heldMoved} ${result}`),
  counted: statement("settle_held_counted", `${heldMoved}, ${leftTenants} ${result}`),
};
const settleHeldDeaths = {
  plain: statement(
    "settle_held_deaths",
    `${heldMoved}, ${raiseDeaths} ${result} ${announceRaised}`,
  ),
  counted: statement(
    "settle_held_deaths_counted",
    `${heldMoved}, ${leftTenants}, ${raiseDeaths} ${result} ${announceRaised}`,
  ),
};

// The lease row, or a robot's claim, is locked, so that a renewal that comes at the same time either wins
// or is refused.
const moveLapsed = `lapsed as materialized (
    select l.id from millrace.lease l where l.id = $4::uuid and l.expires_at < now() for update
  ),
  robots as materialized (
    select c.id from millrace.claim c
    where c.id = any (array(select distinct claim_id from input)) and c.lease_id is null and c.expires_at < now()
    for update
  ),
  over as materialized (
    select id from robots
    union all
    select c.id from millrace.claim c
    where c.id = any (array(select distinct claim_id from input))
      and (c.lease_id in (select id from lapsed)
        or (c.lease_id is not null and not exists (select from millrace.lease l where l.id = c.lease_id)))
  ),
  allowed as materialized (
    select i.* from input i
    where i.claim_id in (select id from over)
      or (select true from millrace.job j where j.id = i.id and j.claim_id = i.claim_id
        and j.started_at + j.max_runtime_ms * interval '1 ms' < now() limit 1)
  ),
  ${moveEnded},
  ${leftTenants},
  forgotten as (
    delete from millrace.claim c where c.id in (select id from over)
      and not exists (select from unnest(c.job_ids) x (id)
        where x.id not in (select id from ended) and x.id not in (select id from freed) and (select true from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1))
    returning c.id
  ),
  closed as (
    delete from millrace.lease l where l.id in (select id from lapsed)
      and not exists (select from millrace.claim c where c.lease_id = l.id and c.id not in (select id from forgotten))
    returning l.*
  ),
  remembered as (${rememberDead("closed")})`;

const settleLapsed = statement("settle_lapsed", `with ${input}, ${moveLapsed} ${result}`);

const settleLapsedDeaths = statement(
  "settle_lapsed_deaths",
  `with ${input}, ${moveLapsed}, ${raiseDeaths} ${result} ${announceRaised}`,
);

/** Who does not say that it does not count for its tenant may. */
function heldStatement(settlements: readonly Settlement[]) {
  const ways = hasDeath(settlements) ? settleHeldDeaths : settleHeld;
  return settlements.every(({ counted }) => counted === false) ? ways.plain : ways.counted;
}

const hasDeath = (settlements: readonly Settlement[]) =>
  settlements.some(({ outcome }) => outcome.kind === "dead");

const toRow = (s: Settlement) => {
  const { outcome } = s;
  const error = "error" in outcome ? outcome.error : undefined;
  return {
    id: s.id,
    claim_id: s.token.claimId,
    claim_no: s.token.claimNo,
    kind: outcome.kind,
    delay_ms: "delayMs" in outcome ? Math.round(outcome.delayMs) : null,
    charged: s.charged === true,
    error_class: error?.class,
    fingerprint: error?.fingerprint,
    message: error?.message,
    stack: error?.stack,
    timeline: s.timeline,
  };
};

interface SettleContext {
  readonly worker: string;
  readonly process: string;
}

/** Notes what took effect, and tells which. */
function noting(settled: Map<string, string>, rows: Iterable<readonly unknown[]>): Set<string> {
  const ids = new Set<string>();
  for (const [id, kind] of rows) {
    if (id === null) continue;
    ids.add(String(id));
    settled.set(String(id), String(kind));
  }
  return ids;
}

const textOf = (settlements: readonly Settlement[]) => JSON.stringify(settlements.map(toRow));

/** The jobs that took effect, with how they ended; whoever is missing was superseded, or is a repeat. */
export async function settleJobs(
  runner: Runner,
  settlements: readonly Settlement[],
  { worker, process }: SettleContext,
): Promise<Settled> {
  const settled = new Map<string, string>();
  const source = heldStatement(settlements);
  const settle = async (missing: readonly Settlement[]) =>
    noting(settled, await runner.rows(source, [textOf(missing), worker, process]));
  const look = standing((held, values) => runner.rows(held, values));
  await untilGone(settlements, settle, look);
  return settled;
}

/** The same inside somebody's transaction. */
export async function settleJobsIn(
  run: RunStatement,
  settlements: readonly Settlement[],
  { worker, process }: SettleContext,
): Promise<Settled> {
  const settled = new Map<string, string>();
  const source = heldStatement(settlements);
  const settle = async (missing: readonly Settlement[]) => {
    const rows = await run(source, [textOf(missing), worker, process]);
    return noting(
      settled,
      rows.map(({ id, kind }) => [id, kind]),
    );
  };
  await untilGone(settlements, settle, standing(run));
  return settled;
}

/**
 * The same for runs whose lease is over (or whose time is), checked again in this statement. Who is missing may have
 * been renewed, or will be found at the next tick.
 */
export async function settleLapsedJobs(
  runner: Runner,
  leaseId: string | null,
  settlements: readonly Settlement[],
  { worker, process }: SettleContext,
): Promise<Settled> {
  const settled = new Map<string, string>();
  const source = hasDeath(settlements) ? settleLapsedDeaths : settleLapsed;
  noting(settled, await runner.rows(source, [textOf(settlements), worker, process, leaseId]));
  return settled;
}
