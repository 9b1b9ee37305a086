import { randomUUID } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";

export {
  findServerBinaries,
  startServer,
  startServerOn,
  type TestServer,
} from "./postgres-server.ts";

/** A fresh database on the run's shared server, or on the given one. */
export async function createDatabase(
  serverUrl: string = inject("postgresUrl"),
): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  await execute(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => execute(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function execute(url: string, sql: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
