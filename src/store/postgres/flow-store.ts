// Flow control beside the claim: slots of tenants, tokens of the door, settings of tenants.

import type { FlowStore, Tenant, TenantSettings, TokenGrant, TokenRequest } from "../flow.ts";
import type { Database } from "./database.ts";
import { factsOf } from "./explain.ts";
import { arrayText, statement } from "./statement.ts";
import { tenantDepths } from "./tenant-count.ts";

const slotOf = statement("slot_of", `select millrace.slot_of($1::int, $2::text) as slot`);
const useLanes = statement("use_lanes", `select millrace.use_lanes($1::int)`);

// In the order of their keys, so that nobody waits for each other in a circle. What is asked for is
// written too: it is the only way to hand it to the update.
const filled = `least(excluded.most, b.tokens
      + greatest(0, extract(epoch from excluded.at - b.at)) * 1000 * excluded.most / excluded.window_ms)`;
const granted = `least(excluded.wanted, greatest(0, floor(${filled})))`;

const takeTokens = statement(
  "take_tokens",
  `insert into millrace.rate_bucket as b (key, most, window_ms, wanted, owed, granted, tokens, at)
  select key, most, window_ms, wanted, owed, least(wanted, most), most - least(wanted, most) - owed, clock_timestamp()
  from unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::int[]) r (key, most, window_ms, wanted, owed)
  order by key collate "C"
  on conflict (key) do update set most = excluded.most, window_ms = excluded.window_ms, wanted = excluded.wanted,
    owed = excluded.owed, granted = ${granted}::int, tokens = ${filled} - ${granted} - excluded.owed,
    at = greatest(b.at, excluded.at)
  returning key, granted, tokens`,
);

const giveBack = statement(
  "give_back_tokens",
  `insert into millrace.rate_bucket as b (key, most, window_ms, wanted, owed, granted, tokens, at)
  select key, 1, 1000, 0, 0, 0, tokens, clock_timestamp() from unnest($1::text[], $2::int[]) r (key, tokens)
  order by key collate "C"
  on conflict (key) do update set tokens = least(b.most, b.tokens + excluded.tokens)`,
);

const tenantColumns =
  "name, weight, paused_at is not null as paused, rate_limit, rate_ms, capacity, warn_depth";

const listTenants = statement(
  "list_tenants",
  `select ${tenantColumns} from millrace.tenant order by name`,
);

const configure = statement(
  "configure_tenant",
  `insert into millrace.tenant as t (name, weight, rate_limit, rate_ms, capacity, warn_depth)
  values ($1::text, coalesce(($2::json->>'weight')::int, 1), ($2::json->'rateLimit'->>'limit')::int,
    ($2::json->'rateLimit'->>'windowMs')::int, ($2::json->>'capacity')::int, ($2::json->>'warnDepth')::int)
  on conflict (name) do update set weight = coalesce(($2::json->>'weight')::int, t.weight),
    rate_limit = case when $2::json->'rateLimit' is null then t.rate_limit else excluded.rate_limit end,
    rate_ms = case when $2::json->'rateLimit' is null then t.rate_ms else excluded.rate_ms end,
    capacity = case when $2::json->'capacity' is null then t.capacity else excluded.capacity end,
    warn_depth = case when $2::json->'warnDepth' is null then t.warn_depth else excluded.warn_depth end, updated_at = now()
  returning ${tenantColumns}, pg_notify(@channel, 'queues')`,
);

// Whoever was passed over is older than what was claimed since.
const pause = statement(
  "pause_tenant",
  `insert into millrace.tenant as t (name, paused_at) values ($1::text, case when $2::boolean then now() end)
  on conflict (name) do update
    set paused_at = case when $2::boolean then coalesce(t.paused_at, now()) end, updated_at = now()
  returning ${tenantColumns}, pg_notify(@channel, 'queues'),
    case when not $2::boolean then pg_notify(@channel, 'late ') end`,
);

const running = statement(
  "count_running",
  `select count(*)::int as running from millrace.claim c cross join unnest(c.job_ids) x (id)
  cross join lateral (
    select from millrace.job j where j.id = x.id and j.claim_id = c.id
      and ($1::int is null or j.queue_id = $1::int) and ($2::text is null or j.tenant = $2::text) limit 1
  ) held`,
);

type TenantRow = {
  name: string;
  weight: number;
  paused: boolean;
  rate_limit: number | null;
  rate_ms: number | null;
  capacity: number | null;
  warn_depth: number | null;
};

const toTenant = (row: TenantRow): Tenant => ({
  name: row.name,
  weight: row.weight,
  paused: row.paused,
  rateLimit:
    row.rate_limit === null || row.rate_ms === null
      ? null
      : { limit: row.rate_limit, windowMs: row.rate_ms },
  capacity: row.capacity,
  warnDepth: row.warn_depth,
});

const firstTenant = (rows: TenantRow[]): Tenant => toTenant(rows[0] as TenantRow);

export function createFlowStore(database: Database): FlowStore {
  return {
    slotOf: async (queueId, tenant) => {
      const rows = await database.query<{ slot: number }>(slotOf, [queueId, tenant]);
      return rows[0]?.slot ?? 0;
    },
    useLanes: async (queueId) => {
      await database.query(useLanes, [queueId]);
    },
    takeTokens: (requests) => take(database, requests),
    giveBackTokens: async (tokens) => {
      await database.query(giveBack, [
        arrayText([...tokens.keys()]),
        arrayText([...tokens.values()]),
      ]);
    },
    tenants: async () => (await database.query<TenantRow>(listTenants)).map(toTenant),
    configureTenant: async (name, settings: TenantSettings) =>
      firstTenant(await database.query<TenantRow>(configure, [name, JSON.stringify(settings)])),
    tenantDepths: (tenants) => tenantDepths(database, tenants),
    pauseTenant: async (name, paused) =>
      firstTenant(await database.query<TenantRow>(pause, [name, paused])),
    running: async ({ queueId, tenant }) => {
      const values = [queueId ?? null, tenant ?? null];
      return (await database.query<{ running: number }>(running, values))[0]?.running ?? 0;
    },
    factsOf: (id) => factsOf(database, id),
  };
}

async function take(
  database: Database,
  requests: readonly TokenRequest[],
): Promise<Map<string, TokenGrant>> {
  const rows = await database.query<{ key: string; granted: number; tokens: number }>(takeTokens, [
    arrayText(requests.map(({ key }) => key)),
    arrayText(requests.map(({ rate }) => rate.limit)),
    arrayText(requests.map(({ rate }) => rate.windowMs)),
    arrayText(requests.map(({ wanted }) => wanted)),
    arrayText(requests.map(({ owed }) => owed)),
  ]);
  return new Map(rows.map(({ key, ...grant }) => [key, grant]));
}
