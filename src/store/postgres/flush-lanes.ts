// The way into controlled queues for jobs without names: as every flush, with a slot and a lane for each job.

import type { Connection } from "./connection.ts";
import { countEnqueued, type Flush, fence, parameters } from "./flush-parts.ts";
import { laneParameters, newJobNames, newJobRows } from "./job-columns.ts";
import { statement } from "./statement.ts";

// Nobody is told their places: PostgreSQL decides the order.
const flushLanes = statement(
  "flush_lanes",
  `with ${fence},
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant,
      payload, expires_at, max_runtime_ms, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    select r.id, base + r.place, now(), now(), r.queue_id, r.weight, r.max_attempts, r.type, r.tenant,
      r.payload::json, now() + r.expires_in_ms * interval '1 ms', r.max_runtime_ms, r.correlation_id,
      r.idempotency_key, r.reference, r.meta, r.tenant_slot, r.lane
    from fence, ${newJobRows}, unnest($18::text::int[]), unnest($19::text::int[])
    ) with ordinality r (${newJobNames}, tenant_slot, lane, place)
  ),
  counted as (${countEnqueued})
  select case when $17::text is not null then pg_notify($16::text, $17::text) end, null, null from fence`,
);

export async function flushToLanes(connection: Connection, flush: Flush): Promise<boolean> {
  const values = [...parameters(flush), ...laneParameters(flush.jobs)];
  return (await connection.rows(flushLanes, values)).length > 0;
}
