// What queues did in the last minutes: sums of the count rows, of which there are a few per queue and
// minute. Nothing here depends on how many jobs there are.

import type { QueueSeries } from "../queue-admin.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

const series = statement(
  "queue_series",
  `with span as (
    select generate_series(date_trunc('minute', now()) - ($2::int - 1) * interval '1 minute',
      date_trunc('minute', now()), interval '1 minute') as minute
  ),
  counted as materialized (
    select queue_id, minute, sum(enqueued)::float8 as enqueued, sum(completed)::float8 as completed,
      sum(retried)::float8 as retried, sum(dead)::float8 as dead
    from millrace.queue_tally
    where queue_id = any($1::int[]) and minute >= date_trunc('minute', now()) - ($2::int - 1) * interval '1 minute'
    group by queue_id, minute
  )
  select null::int as queue_id, s.minute, now() as read_at, coalesce(sum(c.enqueued), 0) as enqueued,
    coalesce(sum(c.completed), 0) as completed, coalesce(sum(c.retried), 0) as retried, coalesce(sum(c.dead), 0) as dead
  from span s left join counted c on c.minute = s.minute group by s.minute
  union all
  select queue_id, null, now(), sum(enqueued), sum(completed), sum(retried), sum(dead) from counted group by queue_id
  order by minute`,
);

interface SeriesRow extends Record<string, unknown> {
  readonly queue_id: number | null;
  readonly minute: Date | null;
  readonly read_at: Date;
  readonly enqueued: number;
  readonly completed: number;
  readonly retried: number;
  readonly dead: number;
}

export async function readQueueSeries(
  database: Database,
  ids: readonly number[],
  minutes: number,
): Promise<QueueSeries> {
  const rows = await database.query<SeriesRow>(series, [ids, minutes]);
  const byMinute: QueueSeries["minutes"][number][] = [];
  const byQueue = new Map<number, QueueSeries["minutes"][number]["counts"]>();
  for (const { queue_id, minute, read_at: _, ...counts } of rows) {
    if (minute !== null) byMinute.push({ at: minute, counts });
    else if (queue_id !== null) byQueue.set(queue_id, counts);
  }
  const [first] = rows;
  if (first === undefined) throw new Error("A span of no minutes.");
  return { minutes: byMinute, queues: byQueue, readAt: first.read_at };
}
