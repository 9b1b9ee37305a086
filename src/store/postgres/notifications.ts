// Notifications: raised in the statement that makes them true, dispatched and deleted in one transaction.

import type { Notification } from "../../domain/notification.ts";
import type { DeliveryJob, Dispatched, DispatchOptions, NotifierSession } from "../webhook.ts";
import type { Database } from "./database.ts";
import { enqueueJobs } from "./enqueue.ts";
import { fenced, type InTransaction, inTerm } from "./leader.ts";
import { noticeTexts } from "./notices.ts";
import { type RunStatement, statement } from "./statement.ts";
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
      from millrace.queue_tally c where c.queue_id = q.id
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

// The same for tenants, in all queues together.
const raiseTenantDepths = statement(
  "raise_tenant_depths",
  `with depth as materialized (
    select t.name, t.warn_depth, (
      select coalesce(sum(c.jobs), 0) from millrace.tenant_count c where c.tenant = t.name
    )::bigint as depth
    from millrace.tenant t where t.warn_depth is not null
  ),
  over as (
    delete from millrace.deep_tenant d
    where not exists (select from depth x where x.name = d.tenant and x.depth > x.warn_depth * 0.9)
  ),
  crossed as (
    insert into millrace.deep_tenant (tenant) select name from depth where depth > warn_depth order by name
    on conflict (tenant) do nothing returning tenant
  ),
  raised as (
    insert into millrace.notification (kind, tenant, data)
    select 'tenant.deep', x.name, json_build_object('depth', x.depth, 'warn_depth', x.warn_depth)
    from crossed join depth x on x.name = crossed.tenant
    where exists (select from millrace.webhook w where w.is_active and 'tenant.deep' = any (w.kinds))
  )
  select count(*)::int as crossed from crossed`,
);

const take = statement(
  "take_notifications",
  `with taken as materialized (
    select id from millrace.notification where at <= now() - $2::float8 * interval '1 ms'
    order by id limit $1::int for update skip locked
  )
  delete from millrace.notification n using taken where n.id = taken.id
  returning n.id, n.kind, n.tenant, n.queue, n.at, n.data`,
);

const outlook = statement(
  "notifier_outlook",
  `select
    exists (select from millrace.notification where at <= now() - $2::float8 * interval '1 ms') as notifications,
    exists (
      select from millrace.job
      where queue_id = (select id from millrace.queue where tenant = '' and name = $1::text)
        and claim_id is null and ready_at <= now() - $2::float8 * interval '1 ms'
    ) as deliveries`,
);

/** How a notifier reaches the database. */
interface Ways {
  readonly read: RunStatement;
  readonly write: RunStatement;
  readonly transaction: InTransaction;
  close(): Promise<void>;
}

function throughPool(database: Database): Ways {
  const run: RunStatement = (source, values) => database.query(source, values);
  return {
    read: run,
    write: run,
    transaction: (body) =>
      database.transaction((query) => body((source, values) => query(source, values))),
    close: async () => {},
  };
}

/** On a connection of its own, which a leader that steps down can let go of. */
function underTerm(database: Database, term: number, patienceMs: number): Ways {
  const connection = database.reserve("notifier", { settings: { lock_timeout: "2s" } });
  return {
    read: (source, values) => connection.query(source, values),
    write: fenced(connection, term, patienceMs).query,
    transaction: inTerm(connection, term, patienceMs),
    close: () => connection.close(),
  };
}

export function notifierSession(
  database: Database,
  fence: { readonly term: number | undefined; readonly patienceMs: number },
): NotifierSession {
  const { term, patienceMs } = fence;
  const ways = term === undefined ? throughPool(database) : underTerm(database, term, patienceMs);
  return {
    raiseDepths: async () => {
      let crossed = 0;
      for (const source of [raiseDepths, raiseTenantDepths])
        crossed += Number((await ways.write(source, []))[0]?.crossed ?? 0);
      return crossed;
    },
    dispatch: (options) => ways.transaction((run) => dispatch(run, database.channel, options)),
    outlook: async (queue, minAgeMs) => {
      const [row] = await ways.read(outlook, [queue, minAgeMs]);
      return { notifications: row?.notifications === true, deliveries: row?.deliveries === true };
    },
    close: () => ways.close(),
  };
}

const mostPerStatement = 1_000;

async function dispatch(
  run: RunStatement,
  channel: string,
  { limit, queueId, plan, minAgeMs }: DispatchOptions,
): Promise<Dispatched> {
  const rows = (await run(take, [limit, minAgeMs])) as unknown as Notification[];
  const notifications = rows.sort((a, b) => (a.id < b.id ? -1 : 1));
  if (notifications.length === 0) return { notifications, jobs: [] };
  const jobs = plan(notifications, await listWebhooks(run));
  for (let from = 0; from < jobs.length; from += mostPerStatement)
    await enqueue(run, channel, queueId, jobs.slice(from, from + mostPerStatement));
  return { notifications, jobs };
}

async function enqueue(
  run: RunStatement,
  channel: string,
  queueId: number,
  jobs: readonly DeliveryJob[],
): Promise<void> {
  const notice = noticeTexts.late([queueId]);
  const request = { flushNo: null, producer: null, channel, notice, jobs };
  const answers = await enqueueJobs(run, request);
  for (const answer of answers ?? []) if (answer instanceof Error) throw answer;
}
