// A migrated store in a database of its own, and plain SQL beside it for what no verb shows.

import pg from "pg";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import { migrate } from "../../src/store/postgres/migrator.ts";
import { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import { createDatabase } from "./postgres.ts";

export interface TestStore {
  readonly store: PostgresStore;
  readonly url: string;
  readonly events: Events;
  sql<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>;
  /** A connection of the caller's own, for transactions. */
  session(): Promise<TestSession>;
  close(): Promise<void>;
}

export interface TestSession {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  close(): Promise<void>;
}

export async function openTestStore(
  serverUrl?: string,
  options: { readonly keyLockTimeoutMs?: number; readonly leaderTtlMs?: number } = {},
): Promise<TestStore> {
  const database = await createDatabase(serverUrl);
  const { allowed } = await migrate({ url: database.url, schema: "millrace" });
  const events = new Events();
  const store = new PostgresStore({
    url: database.url,
    schema: "millrace",
    poolSize: 4,
    queryTimeoutMs: 30_000,
    enqueuePatienceMs: 30_000,
    keyLockTimeoutMs: options.keyLockTimeoutMs ?? 50,
    leaderTtlMs: options.leaderTtlMs ?? 10_000,
    serverVersion: "?",
    allowed,
    events,
    clock: systemClock,
    random: Math.random,
  });
  await store.attachHistory();
  const pool = new pg.Pool({ connectionString: database.url, max: 4, allowExitOnIdle: true });
  pool.on("error", () => {});
  return {
    store,
    events,
    url: database.url,
    sql: async (text, values = []) => (await pool.query(text, values)).rows as never,
    session: async () => {
      const client = new pg.Client({ connectionString: database.url });
      client.on("error", () => {});
      await client.connect();
      return {
        query: (text, values = []) => client.query(text, values),
        close: () => client.end(),
      };
    },
    close: async () => {
      await store.close();
      await pool.end();
      await database.drop();
    },
  };
}
