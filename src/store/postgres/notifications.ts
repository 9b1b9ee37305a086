// Notifications: raised in the statement that makes them true, dispatched and deleted in one transaction.

import type { Notification } from "../../domain/notification.ts";
import type { DeliveryJob, Dispatched, DispatchPlan } from "../webhook.ts";
import type { Database } from "./database.ts";
import { enqueueJobs } from "./enqueue.ts";
import { noticeTexts } from "./notices.ts";
import { statement } from "./statement.ts";
import { listWebhooks } from "./webhooks.ts";

// Deliveries do not tell of themselves. Their type is put together here because the text before a
// dot would be rendered as the schema's name.
export const raiseDeaths = `raised as (
    insert into millrace.notification (kind, tenant, queue, data)
    select 'job.dead', e.tenant, q.name, json_build_object('job_id', e.id, 'type', e.type,
      'attempt', e.new_attempt, 'max_attempts', e.max_attempts, 'crash_count', e.new_crash_count,
      'correlation_id', coalesce(e.correlation_id, e.id::text),
      'error', json_build_object('class', e.error_class, 'message', e.message, 'fingerprint', e.fingerprint))
    from ended e join millrace.queue q on q.id = e.queue_id
    where e.kind = 'dead' and e.type <> 'millrace' || '.webhook_delivery'
      and exists (select from millrace.webhook w where w.is_active and 'job.dead' = any (w.kinds))
    returning id
  )`;

export const announceRaised = `union all
  select null, pg_notify(@channel, 'notifications')::text from raised having count(*) > 0`;

// One row in deep_queue is one crossing, whoever sees it first. It ends a tenth below the mark.
const raiseDepths = statement(
  "raise_depths",
  `with depth as materialized (
    select q.id, q.tenant, q.name, q.warn_depth, (
      select coalesce(sum(c.enqueued - c.completed - c.dead - c.removed), 0)
      from millrace.queue_count c where c.queue_id = q.id
    )::bigint as depth
    from millrace.queue q where q.warn_depth is not null
  ),
  over as (
    delete from millrace.deep_queue d
    where not exists (select from depth x where x.id = d.queue_id and x.depth > x.warn_depth * 0.9)
  ),
  crossed as (
    insert into millrace.deep_queue (queue_id) select id from depth where depth > warn_depth order by id
    on conflict (queue_id) do nothing returning queue_id
  ),
  raised as (
    insert into millrace.notification (kind, tenant, queue, data)
    select 'queue.deep', nullif(x.tenant, ''), x.name, json_build_object('depth', x.depth, 'warn_depth', x.warn_depth)
    from crossed join depth x on x.id = crossed.queue_id
    where exists (select from millrace.webhook w where w.is_active and 'queue.deep' = any (w.kinds))
  )
  select count(*)::int as crossed from crossed`,
);

const take = statement(
  "take_notifications",
  `with taken as materialized (
    select id from millrace.notification order by id limit $1::int for update skip locked
  )
  delete from millrace.notification n using taken where n.id = taken.id
  returning n.id, n.kind, n.tenant, n.queue, n.at, n.data`,
);

export async function raiseQueueDepths(database: Database): Promise<number> {
  return (await database.query<{ crossed: number }>(raiseDepths))[0]?.crossed ?? 0;
}

const mostPerStatement = 1_000;

export async function dispatchNotifications(
  database: Database,
  limit: number,
  queueId: number,
  plan: DispatchPlan,
): Promise<Dispatched> {
  return database.transaction(async (query) => {
    const rows = await query<Notification & { id: string }>(take, [limit]);
    const notifications = rows.sort((a, b) => (a.id < b.id ? -1 : 1));
    if (notifications.length === 0) return { notifications, jobs: [] };
    const jobs = plan(notifications, await listWebhooks(query));
    for (let from = 0; from < jobs.length; from += mostPerStatement)
      await enqueue(database, query, queueId, jobs.slice(from, from + mostPerStatement));
    return { notifications, jobs };
  });
}

async function enqueue(
  { channel }: Database,
  query: Database["query"],
  queueId: number,
  jobs: readonly DeliveryJob[],
): Promise<void> {
  const notice = noticeTexts.late([queueId]);
  const request = { flushNo: null, producer: null, channel, notice, jobs };
  const answers = await enqueueJobs((source, values) => query(source, values), request);
  for (const answer of answers ?? []) if (answer instanceof Error) throw answer;
}
