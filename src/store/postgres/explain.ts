// Everything that decides whether one job may start: the claim's own gates, asked for its queue and lane.

import { breakerNamedIn } from "../../domain/circuit-breaker.ts";
import type { TimelineEntry } from "../../domain/timeline.ts";
import { type GateReason, mostCounted, type WaitingFacts } from "../../domain/waiting-reason.ts";
import type { Database } from "./database.ts";
import { findJobs } from "./read.ts";
import { statement } from "./statement.ts";

// A job that waits for its due time has no place in the order yet: only its queue's facts are read.
const readFacts = statement(
  "read_facts",
  `with place as materialized (
    select queue_id, weight, tenant_slot, lane, seq, tenant, type, claim_id from millrace.job where id = $1::uuid
    union all
    select queue_id, weight, tenant_slot, lane, null, tenant, type, null from millrace.scheduled_job where id = $1::uuid
  ),
  held as materialized (
    select h.lane, h.job_id, coalesce(l.worker, '?') as worker from place p, millrace.held_lanes(p.queue_id) h
    join millrace.claim c on c.id = h.claim_id left join millrace.lease l on l.id = c.lease_id
  ),
  workers as materialized (
    select l.id, l.info from place p join millrace.queue q on q.id = p.queue_id
    join millrace.lease l on l.expires_at >= now() and (l.info->'queues')::jsonb ? q.name
  ),
  handlers as materialized (
    select w.info, w.info->'platforms'->>p.type as platform, (
      select count(*) from millrace.claim c cross join unnest(c.job_ids) x (id)
      cross join lateral (select from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1) held
      where c.lease_id = w.id
    ) < (w.info->>'concurrency')::int as free
    from place p, workers w where w.info->>'types' is null or (w.info->'types')::jsonb ? p.type
  )
  select now() as now, q.concurrency, q.key_concurrency,
    exists (select from millrace.tenant t where t.name = p.tenant and t.paused_at is not null) as tenant_paused,
    g.reason as queue_reason, g.free_at as queue_free_at, lg.reason as lane_reason, lg.free_at as lane_free_at,
    (select json_agg(json_build_object('job', h.job_id, 'worker', h.worker)) from (
      select * from held h where g.reason = 'concurrency' or h.lane = p.lane limit 20) h) as holders,
    (select coalesce(l.worker, '?') from millrace.claim c left join millrace.lease l on l.id = c.lease_id
      where c.id = p.claim_id) as worker,
    (select o.id from millrace.job o
      where p.lane > 1 and p.lane % 2 = 1 and o.queue_id = p.queue_id and o.tenant_slot = p.tenant_slot
        and o.weight = any (array(select millrace.queue_weights(p.queue_id))) and o.lane = p.lane and o.seq < p.seq
        and (o.expires_at is null or o.expires_at > now()) order by o.seq limit 1) as earlier,
    (select json_build_object('job', x.id, 'due_at', x.due_at, 'last', x.timeline->-1, 'held_by_hand', exists (
        select from millrace.breaker b where b.state = 'OPEN' and b.retry_at is null
          and b.name = substring(x.timeline->-1->>'message' from '^The breaker "(.*?)" is open\\.')))
      from (
        (select s.id, s.due_at, s.timeline from millrace.scheduled_job s
          where lg.reason = 'order_retrying' and s.queue_id = p.queue_id and s.lane = p.lane and s.lane > 1
            and s.claim_no > 0 order by s.due_at limit 1)
        union all
        (select d.id, null, d.timeline from millrace.dead_job d
          where lg.reason = 'order_dead' and d.queue_id = p.queue_id and d.lane = p.lane and d.lane > 1
            and d.state = 'dead' and d.reprocessed_as is null order by d.seq limit 1)
      ) x limit 1) as blocker,
    (select count(*) from workers)::int as workers,
    (select count(*) from handlers)::int as handlers,
    (select count(*) from handlers h where h.free is not false)::int as free_handlers,
    (select json_build_object('name', b.name, 'state', b.state, 'retry_at', b.retry_at) from millrace.breaker b
      where b.name = coalesce($3::text, (select min(h.platform) from handlers h))) as breaker,
    (select count(*) from (select from millrace.job o
      where o.queue_id = p.queue_id and o.weight = p.weight and o.tenant_slot = p.tenant_slot and o.lane = p.lane
        and o.seq < p.seq and o.claim_id is null limit $2::int) x)::int as own,
    (select count(*) from (select from millrace.job o
      where o.queue_id = p.queue_id and o.weight < p.weight and o.claim_id is null limit $2::int) x)::int as urgent,
    (select count(*) from millrace.slots_in_turn(q, p.weight, 0, $2::int))::int as tenants
  from place p join millrace.queue q on q.id = p.queue_id
  cross join lateral millrace.queue_gate(q, (select count(*) from held)::int, clock_timestamp()) g
  cross join lateral millrace.lane_gate(
    q, p.lane, (select count(*) from held h where h.lane = p.lane)::int, clock_timestamp()) lg`,
);

type BlockerRow = {
  job: string;
  due_at: string | null;
  last: TimelineEntry | null;
  held_by_hand: boolean;
};

type FactsRow = {
  now: Date;
  concurrency: number | null;
  key_concurrency: number | null;
  tenant_paused: boolean;
  queue_reason: GateReason | null;
  queue_free_at: Date | null;
  lane_reason: GateReason | null;
  lane_free_at: Date | null;
  holders: { job: string; worker: string }[] | null;
  worker: string | null;
  earlier: string | null;
  blocker: BlockerRow | null;
  workers: number;
  handlers: number;
  free_handlers: number;
  breaker: { name: string; state: "CLOSED" | "OPEN" | "HALF_OPEN"; retry_at: string | null } | null;
  own: number;
  urgent: number;
  tenants: number;
};

const nothing: FactsRow = {
  now: new Date(0),
  concurrency: null,
  key_concurrency: null,
  tenant_paused: false,
  queue_reason: null,
  queue_free_at: null,
  lane_reason: null,
  lane_free_at: null,
  holders: null,
  worker: null,
  earlier: null,
  blocker: null,
  workers: 0,
  handlers: 0,
  free_handlers: 0,
  breaker: null,
  own: 0,
  urgent: 0,
  tenants: 0,
};

function toBreaker(row: FactsRow["breaker"], putOffBy: string | null): WaitingFacts["breaker"] {
  if (row === null) return null;
  const { name, state, retry_at } = row;
  const retryAt = retry_at === null ? null : new Date(retry_at);
  return { name, state, retryAt, putOff: name === putOffBy };
}

const toBlocker = ({ job, due_at, last, held_by_hand }: BlockerRow): WaitingFacts["blocker"] => ({
  job,
  dueAt: due_at === null ? null : new Date(due_at),
  lastOutcome: last?.outcome ?? null,
  breaker: breakerNamedIn(last?.message ?? ""),
  heldByHand: held_by_hand,
});

const waits = new Set(["ready", "scheduled", "running"]);

export async function factsOf(database: Database, id: string): Promise<WaitingFacts | null> {
  for (;;) {
    const [job] = await findJobs(database, [id]);
    if (job === undefined) return null;
    const lastRun = job.timeline.at(-1);
    const putOffBy = breakerNamedIn(lastRun?.message ?? "");
    const [row] = waits.has(job.state)
      ? await database.query<FactsRow>(readFacts, [id, mostCounted, putOffBy])
      : [nothing];
    // It ended between the two: look again.
    if (row === undefined) continue;
    const { worker } = row;
    return {
      id,
      state: job.state,
      queue: job.queue,
      type: job.type,
      tenant: job.tenant,
      now: row.now,
      dueAt: job.dueAt,
      expiresAt: job.expiresAt,
      lastOutcome: lastRun?.outcome ?? null,
      breaker: toBreaker(row.breaker, putOffBy),
      crashCount: job.crashCount,
      tenantPaused: row.tenant_paused,
      queueGate: { reason: row.queue_reason, freeAt: row.queue_free_at },
      laneGate: { reason: row.lane_reason, freeAt: row.lane_free_at },
      holders: job.state === "running" ? [{ job: id, worker }] : (row.holders ?? []),
      earlier: row.earlier,
      blocker: row.blocker === null ? null : toBlocker(row.blocker),
      limits: { concurrency: row.concurrency, keyConcurrency: row.key_concurrency },
      workers: row.workers,
      handlers: row.handlers,
      freeHandlers: row.free_handlers,
      ahead: { own: row.own, urgent: row.urgent },
      tenants: row.tenants,
    };
  }
}
