// One connection for one purpose, closed behind it.

import type pg from "pg";
import { Client } from "./client.ts";
import { types } from "./value-readers.ts";

type Limits = Pick<pg.ClientConfig, "connectionTimeoutMillis" | "query_timeout">;

export async function withClient<T>(
  url: string,
  name: string,
  use: (client: pg.Client) => Promise<T>,
  limits: Limits = { connectionTimeoutMillis: 10_000 },
): Promise<T> {
  const client = new Client({
    connectionString: url,
    types,
    application_name: `millrace ${name}`,
    keepAlive: true,
    ...limits,
  });
  // An error that nobody hears ends the process. Whoever waits for an answer is told of it by that.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
