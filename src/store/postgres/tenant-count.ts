// Jobs that count for their tenant carry a mark, given when they are enqueued. Counting them in and out is
// a row of the process's own: no shared row is locked, and jobs without the mark cost nothing.

import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

/** `rows` have a tenant, a queue_id and a meta; `process` is whose rows of counts are written. */
export const countTenants = (rows: string, change: "+" | "-", process: string) =>
  `insert into millrace.tenant_count as c (tenant, queue_id, process, minute, jobs)
    select tenant, queue_id, ${process}, date_trunc('minute', now()), ${change}count(*)
    from ${rows} counted_rows where meta->>'counted' is not null group by tenant, queue_id order by tenant, queue_id
    on conflict (tenant, queue_id, process, minute) do update set jobs = c.jobs + excluded.jobs`;

const read = statement(
  "count_tenants",
  `select tenant, queue_id, sum(jobs)::float8 as jobs from millrace.tenant_count
  where tenant = any ($1::text[]) group by tenant, queue_id`,
);

/** Minutes that are over are folded into one row per tenant and queue; what has come to nothing goes. */
export const foldTenantCounts = statement(
  "fold_tenant_counts",
  `with old as (
    delete from millrace.tenant_count c where c.minute < now() - interval '5 minutes'
      and (c.process <> '00000000-0000-0000-0000-000000000000' or c.jobs = 0) returning *
  )
  insert into millrace.tenant_count as c (tenant, queue_id, process, minute, jobs)
  select tenant, queue_id, '00000000-0000-0000-0000-000000000000', 'epoch', sum(jobs) from old
  where jobs <> 0 group by tenant, queue_id having sum(jobs) <> 0 order by tenant, queue_id
  on conflict (tenant, queue_id, process, minute) do update set jobs = c.jobs + excluded.jobs`,
);

/** How many jobs of these tenants have not ended, by tenant and queue. */
export async function tenantDepths(
  database: Database,
  tenants: readonly string[],
): Promise<{ tenant: string; queueId: number; jobs: number }[]> {
  const rows = await database.query<{ tenant: string; queue_id: number; jobs: number }>(read, [
    tenants,
  ]);
  return rows.map(({ tenant, queue_id, jobs }) => ({ tenant, queueId: queue_id, jobs }));
}
