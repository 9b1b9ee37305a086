// What a doctor looks at. It only reads, on connections of its own, and asks of a schema no more than what
// every version has.

import type pg from "pg";
import { appliedVersions, loadMigrations, missing } from "./migrator.ts";
import { Renderer } from "./statement.ts";
import { withClient } from "./with-client.ts";

export interface ServerFacts {
  readonly version: string;
  readonly versionNumber: number;
  readonly settings: Readonly<Record<(typeof settingNames)[number], string>>;
  readonly connections: number;
  readonly inRecovery: boolean;
  /** How long the oldest transaction of others has held its snapshot. */
  readonly oldestSnapshotSeconds: number | null;
  readonly oldestSnapshotHolder: string | null;
  readonly preparedTransactions: number;
  readonly idleSlots: number;
  /** How far this machine's clock is ahead of the server's; with an error of at most half the round trip. */
  readonly clockAheadMs: number;
  readonly roundTripMs: number;
}

export interface SchemaFacts {
  readonly isThere: boolean;
  readonly pending: readonly string[];
  /** Is there something that waits for the end of older versions? */
  readonly waiting: boolean;
  /** Migrations that this version of the package does not know. */
  readonly ahead: number;
  readonly hot: { readonly live: number; readonly dead: number; readonly bytes: number } | null;
}

export interface PathFacts {
  /** Two statements of one connection ran in two sessions: somebody pools transactions in between. */
  readonly poolsTransactions: boolean;
  readonly hearsNotifications: boolean;
}

const settingNames = [
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "autovacuum",
  "max_connections",
] as const;

const connectTimeoutMs = 10_000;
const hearWithinMs = 3_000;

const limits = {
  connectionTimeoutMillis: connectTimeoutMs,
  query_timeout: 3 * connectTimeoutMs,
};

export const examine = <T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> =>
  withClient(url, "doctor", use, limits);

export async function readServerFacts(client: pg.Client): Promise<ServerFacts> {
  const { rows } = await client.query(
    `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      pg_is_in_recovery() as recovery, (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
      (select count(*)::int from pg_prepared_xacts) as prepared,
      (select count(*)::int from pg_replication_slots where not active) as slots,
      (select json_object_agg(name, setting) from pg_settings where name = any($1::text[])) as settings`,
    [[...settingNames]],
  );
  const [row] = rows;
  const oldest = await client.query(
    `select extract(epoch from now() - xact_start)::float8 as seconds, application_name || ', process ' || pid as holder
    from pg_stat_activity where backend_xmin is not null and xact_start is not null and pid <> pg_backend_pid()
      and backend_type = 'client backend' order by xact_start limit 1`,
  );
  return {
    version: row.version,
    versionNumber: row.number,
    settings: row.settings,
    connections: row.connections,
    inRecovery: row.recovery,
    preparedTransactions: row.prepared,
    idleSlots: row.slots,
    oldestSnapshotSeconds: oldest.rows[0]?.seconds ?? null,
    oldestSnapshotHolder: oldest.rows[0]?.holder ?? null,
    ...(await readClock(client)),
  };
}

/** Of several looks the quickest tells most. */
async function readClock(client: pg.Client) {
  let best = { clockAheadMs: 0, roundTripMs: Number.POSITIVE_INFINITY };
  for (let looks = 0; looks < 5; looks++) {
    const [sentAt, from] = [Date.now(), performance.now()];
    const { rows } = await client.query(
      "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
    );
    const roundTripMs = performance.now() - from;
    const clockAheadMs = sentAt + roundTripMs / 2 - rows[0].ms;
    if (roundTripMs < best.roundTripMs) best = { clockAheadMs, roundTripMs };
  }
  return best;
}

export async function readSchemaFacts(client: pg.Client, schema: string): Promise<SchemaFacts> {
  const renderer = new Renderer(schema);
  const migrations = await loadMigrations();
  const applied = await appliedVersions(client, renderer);
  const known = new Set(migrations.map(({ version }) => version));
  const { rows } = await client.query(
    `select n_live_tup::float8 as live, n_dead_tup::float8 as dead, pg_relation_size(relid)::float8 as bytes
    from pg_stat_all_tables where schemaname = $1 and relname = 'job'`,
    [schema],
  );
  return {
    isThere: applied.size > 0,
    pending: missing(migrations, applied, false).map(
      ({ version, name }) => `${String(version).padStart(4, "0")}_${name}`,
    ),
    waiting: missing(migrations, applied, true).length > 0,
    ahead: [...applied].filter((version) => !known.has(version)).length,
    hot: rows[0] ?? null,
  };
}

/** What lies between us and the server, tried out on the way that workers take. */
export async function readPathFacts(url: string): Promise<PathFacts> {
  const poolsTransactions = await examine(url, (first) =>
    examine(url, async (second) => {
      // A pooler that hands out in turn shows itself at once. One that prefers what was used last has to
      // give that to the second, and something else to the first.
      const backends = [await backendOf(first), await backendOf(first), await backendOf(first)];
      await second.query("begin");
      await backendOf(second);
      backends.push(await backendOf(first));
      await second.query("rollback");
      return new Set(backends).size > 1;
    }),
  );
  return { poolsTransactions, hearsNotifications: await hearsNotifications(url) };
}

async function backendOf(client: pg.Client): Promise<number> {
  return (await client.query("select pg_backend_pid() as pid")).rows[0].pid;
}

function hearsNotifications(url: string): Promise<boolean> {
  const channel = `millrace_doctor_${Math.random().toString(36).slice(2)}`;
  return examine(url, async (listener) => {
    const heard = new Promise<boolean>((answer) => {
      const timer = setTimeout(() => answer(false), hearWithinMs);
      listener.on("notification", () => {
        clearTimeout(timer);
        answer(true);
      });
    });
    await listener.query(`listen ${channel}`);
    await examine(url, (speaker) => speaker.query("select pg_notify($1, '')", [channel]));
    return heard;
  });
}
