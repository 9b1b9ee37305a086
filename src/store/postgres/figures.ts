// Figures for metrics. Depths are sums of counts, what runs is found through claims, what is delayed is
// counted while there is little of it and estimated from some of its pages where there is much.

import type { BreakerState } from "../../domain/circuit-breaker.ts";
import type { FigureStore, Figures, QueueFigures } from "../figures.ts";
import type { Database } from "./database.ts";
import { readLeadership } from "./leader.ts";
import { statement } from "./statement.ts";

/** Of scheduled_job, 8 KB each; below that every page is read, and the count is exact. */
const mostPages = 1_000;
const mostQueues = 500;
const mostHeads = 100;

const share = `(select least(100.0, 100.0 * ${mostPages} * current_setting('block_size')::int
    / greatest(1, pg_relation_size('millrace.scheduled_job')))::float8)`;

const depths = statement(
  "figure_depths",
  `with known as materialized (
    select q.id, q.tenant, q.name, q.paused_at is not null as paused from millrace.queue q
    where q.deleted_at is null order by q.id limit ${mostQueues}
  ),
  counted as materialized (
    select c.queue_id, sum(c.enqueued - c.completed - c.dead - c.removed)::float8 as depth
    from millrace.queue_tally c group by c.queue_id
  ),
  running as materialized (
    select j.queue_id, count(*)::float8 as jobs from millrace.claim c cross join unnest(c.job_ids) x (id)
    cross join lateral (
      select j.queue_id from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1
    ) j group by j.queue_id
  ),
  delayed as materialized (
    select s.queue_id, count(*) * 100.0 / $1::float8 as jobs
    from millrace.scheduled_job s tablesample system ($1::float8) group by s.queue_id
  )
  select k.id, k.tenant, k.name, k.paused, coalesce(c.depth, 0)::float8 as depth, coalesce(r.jobs, 0)::float8 as running,
    coalesce(d.jobs, 0)::float8 as scheduled
  from known k left join counted c on c.queue_id = k.id left join running r on r.queue_id = k.id
  left join delayed d on d.queue_id = k.id order by k.id`,
);

const sampled = statement("figure_share", `select ${share} as share`);

// The head of each weight and lane, as claims find it; of the first lanes where there are very many.
const oldest = statement(
  "figure_oldest",
  `select q.id, o.seconds from unnest($1::int[]) q (id) cross join lateral (
    with recursive head (weight, slot, lane, n) as (
      (select j.weight, j.tenant_slot, j.lane, 1 from millrace.job j where j.queue_id = q.id
        order by j.weight, j.tenant_slot, j.lane limit 1)
      union all
      select n.weight, n.tenant_slot, n.lane, h.n + 1 from head h cross join lateral (
        select j.weight, j.tenant_slot, j.lane from millrace.job j
        where j.queue_id = q.id and (j.weight, j.tenant_slot, j.lane) > (h.weight, h.slot, h.lane)
        order by j.weight, j.tenant_slot, j.lane limit 1
      ) n where h.n < ${mostHeads}
    )
    select extract(epoch from now() - min(f.ready_at))::float8 as seconds
    from head h cross join lateral (
      select j.ready_at from millrace.job j
      where j.queue_id = q.id and j.weight = h.weight and j.tenant_slot = h.slot and j.lane = h.lane
        and j.claim_id is null
      order by j.seq limit 1
    ) f
  ) o`,
);

const others = statement(
  "figure_others",
  `select (select count(*) from millrace.lease where expires_at >= now())::int as workers,
    (select coalesce(json_agg(json_build_object('name', b.name, 'state', b.state) order by b.name), '[]')
      from (select name, state from millrace.breaker order by name limit ${mostQueues}) b) as breakers`,
);

interface DepthRow {
  [column: string]: unknown;
  id: number;
  tenant: string;
  name: string;
  paused: boolean;
  depth: number;
  running: number;
  scheduled: number;
}

export const createFigureStore = (database: Database): FigureStore => ({
  read: () => readFigures(database),
  pool: () => database.poolUse,
});

async function readFigures(database: Database): Promise<Figures> {
  const [sample] = await database.query<{ share: number }>(sampled);
  const rows = await database.query<DepthRow>(depths, [sample?.share ?? 100]);
  const busy = rows.filter(({ depth, running }) => depth > running).map(({ id }) => id);
  const heads = await database.query<{ id: number; seconds: number | null }>(oldest, [busy]);
  const ages = new Map(heads.map(({ id, seconds }) => [id, seconds]));
  const [other] = await database.query<{
    workers: number;
    breakers: { name: string; state: BreakerState }[];
  }>(others);
  const { inOffice, term } = await readLeadership(database);
  return {
    queues: rows.map((row) => toFigures(row, ages.get(row.id) ?? null)),
    breakers: other?.breakers ?? [],
    leader: { inOffice, term },
    workers: other?.workers ?? 0,
  };
}

function toFigures(row: DepthRow, oldestReadySeconds: number | null): QueueFigures {
  const { id, tenant, name, paused, depth, running } = row;
  const waiting = Math.max(0, depth - running);
  const scheduled = Math.min(waiting, Math.round(row.scheduled));
  return {
    ...{ id, tenant, name, paused, running, scheduled },
    ready: waiting - scheduled,
    oldestReadySeconds,
  };
}
