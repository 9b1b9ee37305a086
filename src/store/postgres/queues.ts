// Queues, their settings and their counts.

import { MillraceError } from "../../domain/errors.ts";
import type { Queue, QueueCounts, QueueSettings } from "../store.ts";
import type { Database } from "./database.ts";
import { registerReferences } from "./queue-references.ts";
import { statement } from "./statement.ts";

/** What `toQueue` reads. */
export const queueSettings = `id, tenant, name, description, is_active, paused_at is not null as paused, max_attempts,
  enforce_unique_reference, capacity, warn_depth, retention_days, dead_retention_days, timeline_retention_days,
  key_ttl_seconds, first_tenant, laned, fairness, ageing_step_ms,
  concurrency, key_concurrency, throttle_starts, throttle_ms, key_throttle_starts, key_throttle_ms, dead_blocks_key,
  rate_limit, rate_ms, tenant_rate_limit, tenant_rate_ms, tenant_capacity`;

const queueColumns = `${queueSettings}, millrace.is_controlled(queue) as controlled`;

/** A setting that null switches off: absent means as it was. */
const set = (column: string, setting: string, type: string, path = "") =>
  `${column} = case when $3::json->'${setting}' is null then ${column} else ($3::json->${
    path === "" ? `>'${setting}'` : `'${setting}'->>'${path}'`
  })::${type} end`;

const setRate = (limit: string, ms: string, setting: string) =>
  `${set(limit, setting, "int", "limit")}, ${set(ms, setting, "int", "windowMs")}`;

const ensure = statement(
  "ensure_queues",
  `insert into millrace.queue (tenant, name)
  select $1::text, name from unnest($2::text[]) name order by name on conflict (tenant, name) do nothing`,
);

const read = statement(
  "read_queues",
  `select ${queueColumns} from millrace.queue
  where deleted_at is null and ($2::text[] is null or (tenant = $1::text and name = any($2::text[]))) order by name`,
);

const readOfTenants = statement(
  "read_tenant_queues",
  `select ${queueColumns} from millrace.queue
  where deleted_at is null and tenant <> '' and name = any($1::text[]) order by id`,
);

const update = statement(
  "update_queue",
  `update millrace.queue set
    description = case when $3::json->'description' is null then description else $3::json->>'description' end,
    is_active = coalesce(($3::json->>'isActive')::boolean, is_active),
    max_attempts = case when $3::json->'maxAttempts' is null then max_attempts else ($3::json->>'maxAttempts')::smallint end,
    enforce_unique_reference = coalesce(($3::json->>'enforceUniqueReference')::boolean, enforce_unique_reference),
    capacity = case when $3::json->'capacity' is null then capacity else ($3::json->>'capacity')::int end,
    warn_depth = case when $3::json->'warnDepth' is null then warn_depth else ($3::json->>'warnDepth')::int end,
    retention_days = coalesce(($3::json->>'retentionDays')::smallint, retention_days),
    dead_retention_days = case when $3::json->'deadRetentionDays' is null then dead_retention_days
      else ($3::json->>'deadRetentionDays')::smallint end,
    timeline_retention_days = case when $3::json->'timelineRetentionDays' is null then timeline_retention_days
      else ($3::json->>'timelineRetentionDays')::smallint end,
    key_ttl_seconds = coalesce(($3::json->>'keyTtlSeconds')::int, key_ttl_seconds),
    fairness = coalesce(($3::json->>'fair')::boolean, fairness),
    dead_blocks_key = coalesce(($3::json->>'deadLetterBlocksKey')::boolean, dead_blocks_key),
    ${set("ageing_step_ms", "ageingStepMs", "int")},
    ${set("concurrency", "concurrency", "int")},
    ${set("key_concurrency", "keyConcurrency", "int")},
    ${setRate("throttle_starts", "throttle_ms", "throttle")},
    ${setRate("key_throttle_starts", "key_throttle_ms", "keyThrottle")},
    ${setRate("rate_limit", "rate_ms", "rateLimit")},
    ${setRate("tenant_rate_limit", "tenant_rate_ms", "tenantRateLimit")},
    ${set("tenant_capacity", "tenantCapacity", "int")},
    updated_at = now()
  where tenant = $1::text and name = $2::text returning ${queueColumns}`,
);

const pause = statement(
  "pause_queue",
  `update millrace.queue set paused_at = case when $3::boolean then coalesce(paused_at, now()) end, updated_at = now()
  where tenant = $1::text and name = $2::text
  returning ${queueColumns}, pg_notify($4::text, case when $3::boolean then 'queues' else 'ready ' || id end)`,
);

const announce = statement("announce_queues", `select pg_notify($1::text, 'queues')`);

const attach = statement(
  "attach_history",
  `select sum(millrace.attach_history(class::smallint, (now() at time zone 'utc')::date - 1, $1::int))::int as attached
  from (select distinct retention_days as class from millrace.queue union select 30) classes`,
);

const counts = statement(
  "count_queues",
  `select queue_id, sum(enqueued)::float8 as enqueued, sum(completed)::float8 as completed, sum(dead)::float8 as dead,
    sum(removed)::float8 as removed, sum(retried)::float8 as retried
  from millrace.queue_tally where queue_id = any($1::int[]) group by queue_id`,
);

export interface QueueRow {
  [column: string]: unknown;
  id: number;
  tenant: string;
  name: string;
  description: string | null;
  is_active: boolean;
  paused: boolean;
  max_attempts: number | null;
  enforce_unique_reference: boolean;
  capacity: number | null;
  warn_depth: number | null;
  retention_days: number;
  dead_retention_days: number | null;
  timeline_retention_days: number | null;
  key_ttl_seconds: number;
  first_tenant: string | null;
  laned: boolean;
  controlled: boolean;
  fairness: boolean;
  ageing_step_ms: number | null;
  concurrency: number | null;
  key_concurrency: number | null;
  throttle_starts: number | null;
  throttle_ms: number | null;
  key_throttle_starts: number | null;
  key_throttle_ms: number | null;
  dead_blocks_key: boolean;
  rate_limit: number | null;
  rate_ms: number | null;
  tenant_rate_limit: number | null;
  tenant_rate_ms: number | null;
  tenant_capacity: number | null;
}

const rate = (limit: number | null, windowMs: number | null) =>
  limit === null || windowMs === null ? null : { limit, windowMs };

export const toQueue = (row: QueueRow): Queue => ({
  id: row.id,
  tenant: row.tenant,
  name: row.name,
  description: row.description,
  isActive: row.is_active,
  paused: row.paused,
  maxAttempts: row.max_attempts,
  enforceUniqueReference: row.enforce_unique_reference,
  capacity: row.capacity,
  warnDepth: row.warn_depth,
  retentionDays: row.retention_days,
  deadRetentionDays: row.dead_retention_days,
  timelineRetentionDays: row.timeline_retention_days,
  keyTtlSeconds: row.key_ttl_seconds,
  fair: row.fairness,
  ageingStepMs: row.ageing_step_ms,
  concurrency: row.concurrency,
  keyConcurrency: row.key_concurrency,
  throttle: rate(row.throttle_starts, row.throttle_ms),
  keyThrottle: rate(row.key_throttle_starts, row.key_throttle_ms),
  deadLetterBlocksKey: row.dead_blocks_key,
  rateLimit: rate(row.rate_limit, row.rate_ms),
  tenantRateLimit: rate(row.tenant_rate_limit, row.tenant_rate_ms),
  tenantCapacity: row.tenant_capacity,
  controlled: row.controlled,
  firstTenant: row.first_tenant,
  laned: row.laned,
});

export async function ensureQueues(
  database: Database,
  tenant: string,
  names: readonly string[],
): Promise<Queue[]> {
  const known = await database.query<QueueRow>(read, [tenant, names]);
  if (known.length === new Set(names).size) return known.map(toQueue);
  await database.query(ensure, [tenant, names]);
  return (await database.query<QueueRow>(read, [tenant, names])).map(toQueue);
}

export const listTenantQueues = async (
  database: Database,
  names: readonly string[],
): Promise<Queue[]> => (await database.query<QueueRow>(readOfTenants, [names])).map(toQueue);

export async function listQueues(database: Database): Promise<Queue[]> {
  return (await database.query<QueueRow>(read, [null, null])).map(toQueue);
}

export async function configureQueue(
  database: Database,
  tenant: string,
  name: string,
  settings: QueueSettings,
): Promise<Queue> {
  await ensureQueues(database, tenant, [name]);
  const values = [tenant, name, JSON.stringify(settings)];
  const rows =
    settings.enforceUniqueReference === true
      ? await database.transaction(async (inside) => {
          await registerReferences(inside, tenant, name);
          return inside<QueueRow>(update, values);
        })
      : await database.query<QueueRow>(update, values);
  if (settings.retentionDays !== undefined) await attachHistory(database);
  await database.query(announce, [database.channel]);
  return found(rows[0], name);
}

export async function pauseQueue(
  database: Database,
  tenant: string,
  name: string,
  paused: boolean,
): Promise<Queue> {
  const rows = await database.query<QueueRow>(pause, [tenant, name, paused, database.channel]);
  return found(rows[0], name);
}

function found(row: QueueRow | undefined, name: string): Queue {
  if (row === undefined) throw new MillraceError("QUEUE_NOT_FOUND", `There is no queue "${name}".`);
  return toQueue(row);
}

/** History partitions for yesterday and the next 14 days, for every retention class in use. */
export async function attachHistory(database: Database): Promise<number> {
  const rows = await database.query<{ attached: number }>(attach, [16]);
  return rows[0]?.attached ?? 0;
}

const noCounts = { enqueued: 0, completed: 0, dead: 0, removed: 0, retried: 0, depth: 0 };

export async function countQueues(
  database: Database,
  ids: readonly number[],
): Promise<Map<number, QueueCounts>> {
  const rows = await database.query<Omit<QueueCounts, "depth"> & { queue_id: number }>(counts, [
    ids,
  ]);
  const byId = new Map<number, QueueCounts>(ids.map((id) => [id, noCounts]));
  for (const { queue_id, ...row } of rows) {
    byId.set(queue_id, { ...row, depth: row.enqueued - row.completed - row.dead - row.removed });
  }
  return byId;
}
