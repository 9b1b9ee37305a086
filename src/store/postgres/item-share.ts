// A tenant's share of a queue that all tenants use. There are no counters by tenant, so its own rows are
// looked at, so many of each table at most; dead letters have sums by tenant. What others have is neither
// counted nor walked over: the rows come by an index of the tenant.

import type { ItemStats } from "../item.ts";
import type { Reader } from "./database.ts";
import { statement } from "./statement.ts";

/** Of each of the four tables. */
const most = 3_000;

interface Walks {
  readonly job: string;
  readonly scheduled_job: string;
  readonly dead_job: string;
  readonly history: string;
}

const share = (name: string, walks: Walks, mine: string) =>
  statement(
    name,
    `with ready as materialized (
    select queue_id, tenant, claim_id, created_at, started_at from millrace.job where ${walks.job} limit $3::int + 1
  ),
  delayed as materialized (
    select queue_id, tenant from millrace.scheduled_job where ${walks.scheduled_job} limit $3::int + 1
  ),
  letters as materialized (
    select queue_id, tenant, state, coalesce(started_at, created_at) as began, finished_at, exception_type, result,
      error_message
    from millrace.dead_job where ${walks.dead_job} limit $3::int + 1
  ),
  ended as materialized (
    select queue_id, tenant, state, coalesce(started_at, created_at) as began, finished_at
    from millrace.history where ${walks.history} limit $3::int + 1
  ),
  newest as (
    select extract(epoch from finished_at - began) * 1000 as ms from (
      select queue_id, tenant, began, finished_at from ended where state = 'completed'
      union all select queue_id, tenant, began, finished_at from letters where state = 'dead'
    ) e where ${mine} order by finished_at desc limit 1000
  ),
  held as (
    select count(*) filter (where claim_id is null) as waiting, count(*) filter (where claim_id is not null) as running,
      extract(epoch from now() - min(created_at) filter (where claim_id is null)) as oldest_new,
      extract(epoch from now() - min(started_at) filter (where claim_id is not null)) as oldest_running
    from ready where ${mine}
  ),
  timed as (
    select avg(ms) as average, percentile_cont(array[0.5, 0.95, 0.99]) within group (order by ms) as percentiles
    from newest
  )
  select (h.waiting + (select count(*) from delayed where ${mine}))::float8 as waiting, h.running::float8 as running,
    h.oldest_new::float8 as oldest_new, h.oldest_running::float8 as oldest_running,
    (select count(*) from ended where ${mine} and state = 'completed')::float8 as done,
    (select coalesce(sum(t.letters), 0) from millrace.dead_letter_tally t
      where t.tenant = $2::text and t.queue_id = $1::int and t.status <> 'discarded')::float8 as failed,
    (select count(*) from letters where ${mine} and state = 'dead'
      and millrace.is_business(exception_type, result, error_message))::float8 as business,
    t.average::float8 as average, t.percentiles,
    greatest((select count(*) from ready), (select count(*) from delayed), (select count(*) from letters),
      (select count(*) from ended)) <= $3::int as is_complete
  from held h, timed t`,
  );

const own = "tenant = $2::text and tenant <> 'default'";
const ofTenant = share(
  "tenant_share",
  {
    job: `${own} order by id`,
    scheduled_job: `${own} order by id`,
    dead_job: "tenant = $2::text order by finished_at desc",
    history: `${own} order by finished_at desc`,
  },
  "queue_id = $1::int",
);

// The indexes by tenant leave out `default`, which everybody has who has no tenants: its rows are found
// among those of the queue.
const ofDefault = share(
  "default_share",
  {
    job: "queue_id = $1::int order by weight, tenant_slot, lane, seq",
    scheduled_job: "true order by id",
    dead_job: "queue_id = $1::int and state = 'dead' order by finished_at desc",
    history: "queue_id = $1::int and state = 'completed' order by finished_at desc",
  },
  "queue_id = $1::int and tenant = $2::text",
);

interface ShareRow {
  [column: string]: unknown;
  readonly waiting: number;
  readonly running: number;
  readonly oldest_new: number | null;
  readonly oldest_running: number | null;
  readonly done: number;
  readonly failed: number;
  readonly business: number;
  readonly average: number | null;
  readonly percentiles: readonly number[] | null;
  readonly is_complete: boolean;
}

/** `default` is read as ourselves: behind a policy its walk would have no end. */
export async function readShare(
  readers: { readonly own: Reader; readonly all: Reader },
  queueId: number,
  tenant: string,
  bound = most,
): Promise<ItemStats> {
  const isDefault = tenant === "default";
  const reader = isDefault ? readers.all : readers.own;
  const source = isDefault ? ofDefault : ofTenant;
  const [row] = await reader.query<ShareRow>(source, [queueId, tenant, bound]);
  if (row === undefined) throw new Error("A share is one row.");
  const [p50 = 0, p95 = 0, p99 = 0] = row.percentiles ?? [];
  return {
    new: row.waiting,
    inProgress: row.running,
    done: row.done,
    failed: row.failed,
    business: row.business,
    times: row.average === null ? null : { average: row.average, p50, p95, p99 },
    oldestNewSeconds: row.oldest_new,
    oldestInProgressSeconds: row.oldest_running,
    isComplete: row.is_complete,
  };
}
