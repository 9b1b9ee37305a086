// From configuration to an open store: embedded server if there is no other, migrations, partitions.

import type { Config } from "../config.ts";
import { fromCaller } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { startEmbedded } from "../store/postgres/embedded.ts";
import { asRefusedConnect, isConnectionError } from "../store/postgres/failures.ts";
import { migrate } from "../store/postgres/migrator.ts";
import { PostgresStore } from "../store/postgres/postgres-store.ts";
import { withClient } from "../store/postgres/with-client.ts";
import type { Store } from "../store/store.ts";

export interface OpenedStore {
  readonly store: Store;
  readonly url: string;
  /** Does the server answer a stranger who is in a hurry? */
  readonly answers: () => Promise<boolean>;
  /** For a server that does not: whatever is under way fails. */
  readonly abandon: () => void;
  close(): Promise<void>;
}

export interface Context {
  readonly events: Events;
  readonly clock: Clock;
  readonly random: () => number;
}

export async function openStore(config: Config, context: Context): Promise<OpenedStore> {
  const embedded =
    config.databaseUrl === undefined ? await startEmbedded({ dataDir: config.dataDir }) : null;
  const url = config.databaseUrl ?? embedded?.url ?? "";
  try {
    const { serverVersion, migrations, allowed } = await prepare(url, config, context.events);
    const store = new PostgresStore({
      ...context,
      url,
      schema: config.schema,
      poolSize: config.poolSize,
      queryTimeoutMs: config.queryTimeoutMs,
      enqueuePatienceMs: config.enqueueTimeoutMs,
      keyLockTimeoutMs: 50,
      leaderTtlMs: config.leaderTtlMs,
      serverVersion,
      allowed,
    });
    await reachable(() => store.attachHistory());
    context.events.emit("millrace.started", {
      schema: config.schema,
      embedded: embedded !== null,
      serverVersion,
      migrations,
    });
    const close = async () => {
      await store.close();
      await embedded?.stop();
    };
    return { store, url, close, abandon: store.abandon, answers: () => answersAt(url) };
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

async function prepare(url: string, config: Config, events: Events) {
  return reachable(async () => {
    let migrations = 0;
    const { allowed } = await migrate({
      url,
      schema: config.schema,
      apply: config.migrate,
      onApplied: ({ version, name }) => {
        migrations++;
        events.emit("migration.applied", { version, name });
      },
    });
    return { serverVersion: await serverVersionOf(url), migrations, allowed };
  });
}

async function reachable<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw fromCaller(asRefusedConnect(error));
  }
}

const soonMs = 2_000;

async function answersAt(url: string): Promise<boolean> {
  const limits = { connectionTimeoutMillis: soonMs, query_timeout: soonMs };
  return withClient(url, "ask", (client) => client.query("select"), limits).then(
    () => true,
    (error) => !isConnectionError(error),
  );
}

async function serverVersionOf(url: string): Promise<string> {
  return withClient(url, "start", async (client) => {
    const { rows } = await client.query<{ server_version: string }>("show server_version");
    return rows[0]?.server_version ?? "?";
  });
}
