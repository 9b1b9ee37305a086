// Who is at work: a lease row is a worker's heartbeat, and its claim rows say what it holds.

import type { WorkerPresence } from "../store.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

// A worker that came back under a new lease is not dead.
const list = statement(
  "list_workers",
  `with known as (
    select id, worker, started_at, renewed_at, expires_at >= now() as live, info from millrace.lease
    union all select lease_id, worker, started_at, renewed_at, false, info from millrace.dead_worker
  )
  select k.id as "leaseId", k.worker as name, case when k.live then 'live' else 'dead' end as state,
    k.started_at as "startedAt", k.renewed_at as "renewedAt", k.info, coalesce(held.running, '{}') as running
  from known k
  cross join lateral (
    select json_object_agg(t.type, t.jobs) as running from (
      select j.type, count(*)::int as jobs from millrace.claim c cross join unnest(c.job_ids) x (id)
      cross join lateral (select type from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1) j
      where c.lease_id = k.id group by j.type
    ) t
  ) held
  where k.live or not exists (select from known other where other.worker = k.worker and other.live)
  order by k.live desc, k.worker, k.renewed_at`,
);

export async function listWorkers(database: Database): Promise<WorkerPresence[]> {
  return database.query<WorkerPresence & Record<string, unknown>>(list);
}
