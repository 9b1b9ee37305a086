// All queues at a glance without a scan: counts are sums of a few rows, what runs is found through claims,
// and the oldest through the heads of the claim index.

import type { QueueFigures } from "../queue-admin.ts";
import { type Runner, statement } from "./statement.ts";

// Of a queue with very many lanes the first heads speak for the others.
const read = statement(
  "read_queue_figures",
  `with counted as (
    select queue_id, sum(enqueued)::float8 as enqueued, sum(completed)::float8 as completed,
      sum(retried)::float8 as retried, sum(dead)::float8 as died,
      sum(enqueued - completed - dead - removed)::float8 as depth
    from millrace.queue_tally group by queue_id
  ),
  held as (
    select j.queue_id, count(*)::float8 as running from millrace.claim c cross join unnest(c.job_ids) x (id)
    cross join lateral (
      select j.queue_id from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1
    ) j group by j.queue_id
  ),
  tallied as (
    select queue_id, sum(failed)::float8 as dead from millrace.item_tally group by queue_id
  )
  select q.id, q.tenant, q.name, q.paused_at is not null as paused, q.is_active as "isActive",
    coalesce(c.enqueued, 0) as enqueued, coalesce(c.completed, 0) as completed, coalesce(c.retried, 0) as retried,
    coalesce(c.died, 0) as died, greatest(0, coalesce(c.depth, 0) - coalesce(h.running, 0)) as waiting,
    coalesce(h.running, 0) as running, coalesce(t.dead, 0) as dead, o.seconds as "oldestReadySeconds"
  from millrace.queue q
  left join counted c on c.queue_id = q.id
  left join held h on h.queue_id = q.id
  left join tallied t on t.queue_id = q.id
  cross join lateral (
    with recursive head (weight, slot, lane) as (
      (select j.weight, j.tenant_slot, j.lane from millrace.job j where j.queue_id = q.id
        order by j.weight, j.tenant_slot, j.lane limit 1)
      union all
      select n.* from head h cross join lateral (
        select j.weight, j.tenant_slot, j.lane from millrace.job j
        where j.queue_id = q.id and (j.weight, j.tenant_slot, j.lane) > (h.weight, h.slot, h.lane)
        order by j.weight, j.tenant_slot, j.lane limit 1
      ) n
    )
    select extract(epoch from now() - min(f.ready_at))::float8 as seconds
    from (select * from head limit 100) h cross join lateral (
      select j.ready_at from millrace.job j
      where j.queue_id = q.id and j.weight = h.weight and j.tenant_slot = h.slot and j.lane = h.lane
        and j.claim_id is null
      order by j.seq limit 1
    ) f
  ) o
  where q.deleted_at is null order by q.name, q.tenant`,
);

export const readQueueFigures = (runner: Pick<Runner, "query">): Promise<QueueFigures[]> =>
  runner.query<QueueFigures & Record<string, unknown>>(read);
