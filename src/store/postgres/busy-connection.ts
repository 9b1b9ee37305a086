// The connections that all jobs go through.
//
// After each statement a server gives the memory it used back to the system, and has to ask for it again, page by
// page: with jobs of 1 KB a tenth of its work. Its allocator (glibc's) keeps twice as much as the largest piece that
// was ever given back. So a large one is, once.

import type pg from "pg";
import type { Connection } from "./connection.ts";
import type { Database } from "./database.ts";

const keptBytes = 4 << 20;
const lockTimeoutMs = 5_000;

export const busyConnection = (
  database: Database,
  name: string,
  waitMs = lockTimeoutMs,
): Connection =>
  database.reserve(name, { settings: { lock_timeout: `${waitMs}ms` }, onConnect: keepMemory });

async function keepMemory(client: pg.Client): Promise<void> {
  await client.query(`select length(repeat('x', ${keptBytes}))`);
}
