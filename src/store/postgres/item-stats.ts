// A queue's figures without a scan: counts are sums of a few rows, what runs is found through claims,
// and times are those of the last thousand that ended.

import type { ItemStats } from "../item.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

const counts = statement(
  "item_counts",
  `with counted as (
    select coalesce(sum(enqueued - completed - dead - removed), 0)::float8 as depth,
      coalesce(sum(completed), 0)::float8 as completed
    from millrace.queue_tally where queue_id = $1::int
  ),
  tallied as (
    select coalesce(sum(failed), 0)::float8 as failed, coalesce(sum(business), 0)::float8 as business,
      coalesce(sum(done_deleted), 0)::float8 as done_deleted
    from millrace.item_tally where queue_id = $1::int
  ),
  running as materialized (
    select j.started_at from millrace.claim c cross join unnest(c.job_ids) x (id)
    cross join lateral (
      select j.started_at from millrace.job j where j.id = x.id and j.claim_id = c.id and j.queue_id = $1::int limit 1
    ) j
  )
  select c.depth, c.completed, t.failed, t.business, t.done_deleted,
    (select count(*) from running)::float8 as running,
    (select extract(epoch from now() - min(started_at)) from running)::float8 as oldest_running
  from counted c, tallied t`,
);

const times = statement(
  "item_times",
  `with ended as (
    (select coalesce(started_at, created_at) as began, finished_at from millrace.history
      where queue_id = $1::int and state = 'completed' order by finished_at desc limit 1000)
    union all
    (select coalesce(started_at, created_at), finished_at from millrace.dead_job
      where queue_id = $1::int and state = 'dead' order by finished_at desc limit 1000)
  ),
  newest as (
    select extract(epoch from finished_at - began) * 1000 as ms from ended order by finished_at desc limit 1000
  )
  select avg(ms)::float8 as average, percentile_cont(array[0.5, 0.95, 0.99]) within group (order by ms) as percentiles
  from newest`,
);

// The head of each weight and lane, as claims find it.
const oldest = statement(
  "oldest_new_item",
  `with recursive head (weight, slot, lane) as (
    (select j.weight, j.tenant_slot, j.lane from millrace.job j where j.queue_id = $1::int
      order by j.weight, j.tenant_slot, j.lane limit 1)
    union all
    select n.* from head h cross join lateral (
      select j.weight, j.tenant_slot, j.lane from millrace.job j
      where j.queue_id = $1::int and (j.weight, j.tenant_slot, j.lane) > (h.weight, h.slot, h.lane)
      order by j.weight, j.tenant_slot, j.lane limit 1
    ) n
  )
  select extract(epoch from now() - min(f.created_at))::float8 as seconds
  from (select * from head limit 1000) h cross join lateral (
    select j.created_at from millrace.job j
    where j.queue_id = $1::int and j.weight = h.weight and j.tenant_slot = h.slot and j.lane = h.lane
      and j.claim_id is null
    order by j.seq limit 1
  ) f`,
);

type CountRow = Record<
  "depth" | "completed" | "failed" | "business" | "done_deleted" | "running",
  number
> & { oldest_running: number | null };

export async function readItemStats(database: Database, queueId: number): Promise<ItemStats> {
  const [[row], [timed], [head]] = await Promise.all([
    database.query<CountRow>(counts, [queueId]),
    database.query<{ average: number | null; percentiles: number[] }>(times, [queueId]),
    database.query<{ seconds: number | null }>(oldest, [queueId]),
  ]);
  const running = row?.running ?? 0;
  const [p50 = 0, p95 = 0, p99 = 0] = timed?.percentiles ?? [];
  const average = timed?.average ?? null;
  return {
    new: Math.max(0, (row?.depth ?? 0) - running),
    inProgress: running,
    done: (row?.completed ?? 0) - (row?.done_deleted ?? 0),
    failed: row?.failed ?? 0,
    business: row?.business ?? 0,
    times: average === null ? null : { average, p50, p95, p99 },
    oldestNewSeconds: head?.seconds ?? null,
    oldestInProgressSeconds: row?.oldest_running ?? null,
    isComplete: true,
  };
}
