// The way into controlled queues for jobs without names: as every flush, with a slot and a lane for each job.

import type { Connection } from "./connection.ts";
import { countEnqueued, type Flush, fence, parameters } from "./flush-parts.ts";
import { isCounted, laneParameters, newJobNames, newJobRows } from "./job-columns.ts";
import { statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

// Nobody is told their places: PostgreSQL decides the order.
const flushLanesWith = (name: string, returning: string, counted: string) =>
  statement(
    `flush_lanes${name}`,
    `with ${fence},
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant,
      payload, expires_at, max_runtime_ms, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    select r.id, base + r.place, now(), now(), r.queue_id, r.weight, r.max_attempts, r.type, r.tenant,
      r.payload::json, now() + r.expires_in_ms * interval '1 ms', r.max_runtime_ms, r.correlation_id,
      r.idempotency_key, r.reference, r.meta, r.tenant_slot, r.lane
    from fence, ${newJobRows}, unnest($18::text::int[]), unnest($19::text::int[])
    ) with ordinality r (${newJobNames}, tenant_slot, lane, place)
    ${returning}
  ),${counted}
  counted as (${countEnqueued})
  select case when $17::text is not null then pg_notify($16::text, $17::text) end, null, null from fence`,
  );

const flushLanes = flushLanesWith("", "", "");
const flushCounted = flushLanesWith(
  "_counted",
  "returning tenant, queue_id, meta",
  `
  tenants_counted as (${countTenants("inserted", "+", "$2::text::uuid")}),`,
);

export async function flushToLanes(connection: Connection, flush: Flush): Promise<boolean> {
  const values = [...parameters(flush), ...laneParameters(flush.jobs)];
  const source = flush.jobs.some(isCounted) ? flushCounted : flushLanes;
  return (await connection.rows(source, values)).length > 0;
}
