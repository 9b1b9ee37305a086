// What operators do with queues beyond their settings: purge, count, delete.

import type { QueueAdmin, QueueRecord } from "../queue-admin.ts";
import type { Database, Reader } from "./database.ts";
import { forgetPayloads } from "./long-payload.ts";
import { readQueueFigures } from "./queue-figures.ts";
import { readQueueSeries } from "./queue-series.ts";
import { type QueueRow, queueSettings, toQueue } from "./queues.ts";
import { statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

// The tables that say whether a queue is controlled are not for tenants to read, nor is the answer.
const controlled = `case when current_user = 'millrace_tenant' then laned else millrace.is_controlled(queue) end as controlled`;

const columns = `${queueSettings}, ${controlled}, external_id, created_at, updated_at`;

const list = statement(
  "list_queue_records",
  `select ${columns} from millrace.queue
  where deleted_at is null and ($1::text is null or tenant in ('', $1::text)) order by id`,
);

const find = statement(
  "find_queue_record",
  `select ${columns} from millrace.queue where id = $1::int and deleted_at is null`,
);

const resolve = statement(
  "resolve_queue",
  `select ${columns} from millrace.queue where tenant in ($1::text, '') and name = $2::text and deleted_at is null
  order by tenant desc limit 1`,
);

const create = statement(
  "create_queue",
  `insert into millrace.queue (tenant, name, max_attempts) values ($1::text, $2::text, 1)
  on conflict (tenant, name) do nothing returning id`,
);

const setExternalId = statement(
  "set_queue_external_id",
  `update millrace.queue set external_id = $2::text, updated_at = now() where id = $1::int`,
);

const taken = `id, created_at, queue_id, claim_no, weight, attempt, max_attempts, crash_count, type, tenant, payload,
      correlation_id, idempotency_key, reference, meta, timeline`;

const purge = statement(
  "purge_queue",
  `with waiting as (
    delete from millrace.job where ctid = any (array(
      select ctid from millrace.job where queue_id = $1::int and claim_id is null
      limit $2::int for update skip locked)) and claim_id is null
    returning ${taken}
  ),
  delayed as (
    delete from millrace.scheduled_job where ctid = any (array(
      select ctid from millrace.scheduled_job where queue_id = $1::int order by due_at limit $2::int for update skip locked))
    returning ${taken}
  ),
  gone as (select * from waiting union all select * from delayed),
  archived as (
    insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
      attempt, max_attempts, crash_count, type, tenant, payload, correlation_id, idempotency_key, reference, meta,
      timeline, closed_reason)
    select g.id, 'deleted', g.created_at, now(), g.queue_id, g.claim_no, q.retention_days, g.weight, g.attempt,
      g.max_attempts, g.crash_count, g.type, g.tenant, g.payload, g.correlation_id, g.idempotency_key, g.reference,
      g.meta, g.timeline, 'purged'
    from gone g join millrace.queue q on q.id = g.queue_id
  ),
  unnamed as (delete from millrace.unique_name where job_id in (select id from gone)),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, removed)
    select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*) from gone group by queue_id
  ),
  tenants_counted as (${countTenants("gone", "-", "gen_random_uuid()")})
  select count(*)::int as gone from gone`,
);

const close = statement(
  "close_queue",
  `update millrace.queue set is_active = false, updated_at = now() where id = $1::int
  returning pg_notify(@channel, 'queues')`,
);

const remove = statement(
  "remove_queue_items",
  `with hot as (
    delete from millrace.job where ctid = any (array(
      select ctid from millrace.job where queue_id = $1::int limit $2::int for update)) returning id, claim_id
  ),
  freed as (
    delete from millrace.claim c where c.lease_id is null and c.holder is not null
      and c.id in (select claim_id from hot where claim_id is not null)
  ),
  delayed as (
    delete from millrace.scheduled_job where ctid = any (array(
      select ctid from millrace.scheduled_job where queue_id = $1::int order by due_at limit $2::int for update)) returning id
  ),
  dead as (
    delete from millrace.dead_job where ctid = any (array(
      select ctid from millrace.dead_job where queue_id = $1::int order by state, finished_at limit $2::int for update)) returning id
  ),
  old as materialized (
    select id, finished_at, retention_days from millrace.history where queue_id = $1::int limit $2::int
  ),
  ended as (
    delete from millrace.history h using old o
    where h.id = o.id and h.finished_at = o.finished_at and h.retention_days = o.retention_days returning h.id
  ),
  gone as (
    select id from hot union all select id from delayed union all select id from dead union all select id from ended
  ),
  unnamed as (delete from millrace.unique_name where job_id in (select id from gone)),
  unlabelled as (delete from millrace.job_label where job_id in (select id from gone)),
  emptied as (${forgetPayloads("gone")})
  select count(*)::int as gone from gone`,
);

// The name is free again; the row stays for whoever still has its number in mind.
const bury = statement(
  "bury_queue",
  `with changed as (
    update millrace.queue set deleted_at = now(), is_active = false, name = 'deleted:' || id || ':' || name,
      updated_at = now()
    where id = $1::int and deleted_at is null returning id, nullif(tenant, '') as tenant, name
  ),
  uncounted as (delete from millrace.queue_count where queue_id = $1::int),
  left_by_tenants as (delete from millrace.tenant_count where queue_id = $1::int),
  untallied as (delete from millrace.item_tally where queue_id = $1::int)
  insert into millrace.audit (tenant, actor, action, target, details)
  select tenant, $2::text, 'queue_delete', id::text, json_build_object(
    'name', substr(name, length('deleted:' || id || ':') + 1), 'items', $3::int) from changed
  returning pg_notify(@channel, 'queues')`,
);

const rowsAtOnce = 1_000;

type RecordRow = QueueRow & { external_id: string | null; created_at: Date; updated_at: Date };

const toRecord = (row: RecordRow): QueueRecord => ({
  ...toQueue(row),
  externalId: row.external_id,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export const listQueueRecords = async (
  database: Reader,
  tenant: string | null,
): Promise<QueueRecord[]> => (await database.query<RecordRow>(list, [tenant])).map(toRecord);

export async function findQueue(database: Reader, id: number): Promise<QueueRecord | null> {
  const [row] = await database.query<RecordRow>(find, [id]);
  return row === undefined ? null : toRecord(row);
}

export function createQueueAdmin(
  database: Database,
  countItems: (id: number) => Promise<number>,
): QueueAdmin {
  const one = async (...call: Parameters<Database["query"]>) => {
    const [row] = await database.query<RecordRow>(...call);
    return row === undefined ? null : toRecord(row);
  };
  const inBatches = async (source: typeof purge, id: number) => {
    for (let all = 0; ; ) {
      const [row] = await database.query<{ gone: number }>(source, [id, rowsAtOnce]);
      if ((row?.gone ?? 0) === 0) return all;
      all += row?.gone ?? 0;
    }
  };
  return {
    figures: () => readQueueFigures(database),
    list: (tenant) => listQueueRecords(database, tenant),
    find: (id) => findQueue(database, id),
    resolve: (tenant, name) => one(resolve, [tenant, name]),
    create: async (tenant, name) => (await database.query(create, [tenant, name])).length > 0,
    setExternalId: async (id, externalId) =>
      void (await database.query(setExternalId, [id, externalId])),
    purge: (id) => inBatches(purge, id),
    series: (ids, minutes) => readQueueSeries(database, ids, minutes),
    countItems,
    async delete(id, actor, count) {
      await database.query(close, [id]);
      await inBatches(remove, id);
      await database.query(bury, [id, actor, count]);
    },
  };
}
