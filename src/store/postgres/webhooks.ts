// Webhooks: settings, signing keys and health. Changes leave an audit entry; keys and URLs are not in it.

import type {
  DeliverableWebhook,
  FailedDelivery,
  HealthChange,
  NewWebhook,
  Webhook,
  WebhookSettings,
} from "../webhook.ts";
import type { Database } from "./database.ts";
import { type RunStatement, statement } from "./statement.ts";

const columns = `id, tenant, name, url, kinds, queues, is_active, failures, failing_since, last_error,
  last_failed_at, last_delivered_at, created_at`;

const audited = (action: string, actor: string) => `audited as (
    insert into millrace.audit (tenant, actor, action, target) select tenant, ${actor}::text, '${action}', id::text from changed
  )`;

const create = statement(
  "create_webhook",
  `with changed as (
    insert into millrace.webhook (id, tenant, name, url, kinds, queues, signing_key)
    values ($1::uuid, $2::text, $3::text, $4::text, $5::text[], $6::text[], $7::bytea) returning ${columns}
  ), ${audited("webhook_create", "$8")}
  select * from changed`,
);

const list = statement("list_webhooks", `select ${columns} from millrace.webhook order by id`);

const find = statement(
  "find_webhook",
  `select ${columns}, signing_key,
    case when old_signing_key_until > now() then old_signing_key end as old_signing_key
  from millrace.webhook where id = $1::uuid`,
);

// A new URL is a new receiver: its predecessor's failures are not its own.
const update = statement(
  "update_webhook",
  `with changed as (
    update millrace.webhook set
      name = coalesce($2::json->>'name', name),
      kinds = case when $2::json->'kinds' is null then kinds
        else array(select json_array_elements_text($2::json->'kinds')) end,
      queues = case when $2::json->'queues' is null then queues
        when json_typeof($2::json->'queues') = 'null' then null
        else array(select json_array_elements_text($2::json->'queues')) end,
      is_active = coalesce(($2::json->>'isActive')::boolean, is_active),
      failures = case when $2::json->>'url' <> url then 0 else failures end,
      failing_since = case when $2::json->>'url' <> url then null else failing_since end,
      url = coalesce($2::json->>'url', url),
      retry_at = null,
      updated_at = now()
    where id = $1::uuid returning ${columns}
  ), ${audited("webhook_update", "$3")}
  select * from changed`,
);

const rotate = statement(
  "rotate_webhook_secret",
  `with changed as (
    update millrace.webhook set old_signing_key = signing_key, signing_key = $2::bytea,
      old_signing_key_until = now() + $3::float8 * interval '1 ms', updated_at = now()
    where id = $1::uuid returning ${columns}
  ), ${audited("webhook_rotate_secret", "$4")}
  select * from changed`,
);

const remove = statement(
  "delete_webhook",
  `with changed as (delete from millrace.webhook where id = $1::uuid returning id, tenant),
  ${audited("webhook_delete", "$2")}
  select id from changed`,
);

const noteDelivered = statement(
  "note_webhook_delivered",
  `update millrace.webhook w set failures = 0, failing_since = null, retry_at = null,
    last_delivered_at = now()
  from (select id, failing_since from millrace.webhook where id = $1::uuid for update) before
  where w.id = before.id returning before.failing_since is not null as changed`,
);

const noteFailed = statement(
  "note_webhook_failed",
  `update millrace.webhook w set failures = w.failures + 1, last_error = $2::text, last_failed_at = now(),
    failing_since = case when w.failures + 1 >= $3::int then coalesce(w.failing_since, now()) end,
    retry_at = now() + $4::float8 * interval '1 ms'
  from (select id, failing_since from millrace.webhook where id = $1::uuid for update) before
  where w.id = before.id returning before.failing_since is null and w.failing_since is not null as changed`,
);

// Whoever comes second waits for the first one's row, and then finds the turn taken.
const takeTurn = statement(
  "take_webhook_turn",
  `with taken as (
    update millrace.webhook set retry_at = now() + $2::float8 * interval '1 ms'
    where id = $1::uuid and (retry_at is null or retry_at <= now()) returning id
  )
  select case when exists (select from taken) then 0
    else greatest(100, extract(epoch from retry_at - now()) * 1000) end::float8 as wait_ms
  from millrace.webhook where id = $1::uuid`,
);

interface WebhookRow {
  id: string;
  tenant: string | null;
  name: string;
  url: string;
  kinds: string[];
  queues: string[] | null;
  is_active: boolean;
  failures: number;
  failing_since: Date | null;
  last_error: string | null;
  last_failed_at: Date | null;
  last_delivered_at: Date | null;
  created_at: Date;
}

const toWebhook = (row: WebhookRow): Webhook => ({
  id: row.id,
  tenant: row.tenant,
  name: row.name,
  url: row.url,
  kinds: row.kinds,
  queues: row.queues,
  isActive: row.is_active,
  failures: row.failures,
  failingSince: row.failing_since,
  lastError: row.last_error,
  lastFailedAt: row.last_failed_at,
  lastDeliveredAt: row.last_delivered_at,
  createdAt: row.created_at,
});

type Query = Database["query"];

async function one(query: Query, ...call: Parameters<Query>): Promise<Webhook | null> {
  const [row] = await query<WebhookRow>(...call);
  return row === undefined ? null : toWebhook(row);
}

export async function createWebhook(
  database: Database,
  webhook: NewWebhook,
  actor: string,
): Promise<Webhook> {
  const { id, tenant, name, url, kinds, queues, signingKey } = webhook;
  const values = [id, tenant, name, url, kinds, queues, signingKey, actor];
  const [row] = await database.query<WebhookRow>(create, values);
  if (row === undefined) throw new Error("the webhook could not be made");
  return toWebhook(row);
}

export const listWebhooks = async (run: RunStatement): Promise<Webhook[]> =>
  ((await run(list, [])) as unknown as WebhookRow[]).map(toWebhook);

export async function findWebhook(
  database: Database,
  id: string,
): Promise<DeliverableWebhook | null> {
  type Row = WebhookRow & { signing_key: Buffer; old_signing_key: Buffer | null };
  const [row] = await database.query<Row>(find, [id]);
  if (row === undefined) return null;
  const { signing_key, old_signing_key } = row;
  const signingKeys = old_signing_key === null ? [signing_key] : [signing_key, old_signing_key];
  return { ...toWebhook(row), signingKeys };
}

export const updateWebhook = (
  database: Database,
  id: string,
  settings: WebhookSettings,
  actor: string,
) => one(database.query.bind(database), update, [id, JSON.stringify(settings), actor]);

export const rotateWebhookSecret = (
  database: Database,
  id: string,
  signingKey: Buffer,
  overlapMs: number,
  actor: string,
) => one(database.query.bind(database), rotate, [id, signingKey, overlapMs, actor]);

export async function deleteWebhook(
  database: Database,
  id: string,
  actor: string,
): Promise<boolean> {
  return (await database.query(remove, [id, actor])).length > 0;
}

export async function noteWebhookDelivered(database: Database, id: string): Promise<HealthChange> {
  const [row] = await database.query<{ changed: boolean }>(noteDelivered, [id]);
  return row?.changed === true ? "recovered" : null;
}

export async function noteWebhookFailed(
  database: Database,
  id: string,
  { error, failingAfter, waitMs }: FailedDelivery,
): Promise<HealthChange> {
  const values = [id, error, failingAfter, waitMs];
  const [row] = await database.query<{ changed: boolean }>(noteFailed, values);
  return row?.changed === true ? "failing" : null;
}

export async function takeWebhookTurn(
  database: Database,
  id: string,
  holdMs: number,
): Promise<number> {
  return (await database.query<{ wait_ms: number }>(takeTurn, [id, holdMs]))[0]?.wait_ms ?? 0;
}
