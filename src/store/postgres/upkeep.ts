// Upkeep of the tables themselves: any process may do it, one at a time does.

import type { Connection } from "./connection.ts";
import { type Runner, statement } from "./statement.ts";
import { addTallies } from "./tally.ts";
import { foldTenantCounts } from "./tenant-count.ts";

const lock = statement(
  "upkeep_lock",
  "select pg_try_advisory_lock(hashtextextended($1::text, 0)) as locked",
);
const unlock = statement(
  "upkeep_unlock",
  "select pg_advisory_unlock(hashtextextended($1::text, 0))",
);
const vacuum = statement(
  "",
  "vacuum (truncate false, skip_locked true) millrace.job, millrace.claim, millrace.lease, millrace.producer, millrace.queue_count, millrace.tenant_count, millrace.scheduled_job",
);

const hotRows = statement(
  "count_hot_rows",
  "select greatest(reltuples, 0)::float8 as rows from pg_class where oid = 'millrace.job'::regclass",
);

// Minutes of processes that are over are folded into one row per queue and minute, and those of more than
// an hour into one row per queue, so that sums stay short. Those of a queue that was deleted are forgotten.
const foldCounts = statement(
  "fold_counts",
  `with old as (
    delete from millrace.queue_count c
    where (c.minute < now() - interval '5 minutes' and c.process <> '00000000-0000-0000-0000-000000000000')
      or (c.minute < now() - interval '65 minutes' and c.minute > 'epoch')
    returning *
  ),
  sums as (
    select queue_id, case when minute < now() - interval '65 minutes' then 'epoch' else minute end as minute,
      sum(enqueued) e, sum(completed) c, sum(dead) d, sum(removed) r, sum(retried) t
    from old where exists (select from millrace.queue q where q.id = queue_id and q.deleted_at is null) group by 1, 2
  )
  insert into millrace.queue_count (queue_id, process, minute, enqueued, completed, dead, removed, retried)
  select queue_id, '00000000-0000-0000-0000-000000000000', minute, e, c, d, r, t from sums
  on conflict (queue_id, process, minute) do update set
    enqueued = queue_count.enqueued + excluded.enqueued, completed = queue_count.completed + excluded.completed,
    dead = queue_count.dead + excluded.dead, removed = queue_count.removed + excluded.removed,
    retried = queue_count.retried + excluded.retried`,
);

const forgetNames = statement(
  "forget_old_names",
  `with gone as (
    delete from millrace.unique_name where ctid = any (array(
      select ctid from millrace.unique_name where expires_at < now() order by expires_at limit $1::int))
    returning 1
  )
  select count(*)::int as gone from gone`,
);

const forgetEvents = statement(
  "forget_old_events",
  `with gone as (
    delete from millrace.event where id = any (array(
      select id from millrace.event where at < now() - interval '1 day' order by at limit $1::int))
    returning 1
  )
  select count(*)::int as gone from gone`,
);

const forgetGone = statement(
  "forget_gone_processes",
  `with workers as (delete from millrace.dead_worker where expires_at < now() - interval '1 day'),
  starts as (delete from millrace.start_count where expires_at < now()),
  sessions as (delete from millrace.session where expires_at < now() or idle_until < now()),
  -- A full bucket is as good as none.
  buckets as (
    delete from millrace.rate_bucket
    where at < now() - (most - tokens) / most * window_ms * interval '1 ms' - interval '1 minute'
  ),
  producers as (delete from millrace.producer where seen_at < now() - interval '1 day' returning *)
  ${addTallies("producers")}`,
);

const rowsAtOnce = 1_000;

/** One process at a time; false when another one is at it. */
export async function exclusively(
  connection: Connection,
  name: string,
  body: () => Promise<unknown>,
): Promise<boolean> {
  const rows = await connection.query<{ locked: boolean }>(lock, [name]);
  if (rows[0]?.locked !== true) return false;
  try {
    await body();
  } finally {
    await connection.query(unlock, [name]);
  }
  return true;
}

export function vacuumHotTables(connection: Connection, schema: string): Promise<boolean> {
  return exclusively(connection, `millrace.vacuum.${schema}`, () => connection.query(vacuum));
}

/** As the last vacuum or analyze has left it. */
export async function estimateHotRows(connection: Connection): Promise<number> {
  const [row] = await connection.query<{ rows: number }>(hotRows);
  return row?.rows ?? 0;
}

/** `writer` is the connection, or a leader's way to write on it. */
export function tidyUp(connection: Connection, writer: Runner, schema: string): Promise<boolean> {
  return exclusively(connection, `millrace.tidy.${schema}`, async () => {
    await writer.query(foldCounts);
    await writer.query(foldTenantCounts);
    for (const forget of [forgetNames, forgetEvents])
      for (let gone = rowsAtOnce; gone === rowsAtOnce; ) {
        const rows = await writer.query<{ gone: number }>(forget, [String(rowsAtOnce)]);
        gone = rows[0]?.gone ?? 0;
      }
    await writer.query(forgetGone);
  });
}
