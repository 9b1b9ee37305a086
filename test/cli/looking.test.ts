// Commands that only look, on a server that belongs to somebody: they make nothing and migrate nothing.

import pg from "pg";
import { expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { CommandStage, runHere } from "../support/command-line.ts";

const stage = new CommandStage("file");

async function ask<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: stage.url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

const looking = [
  ...[["queues"], ["jobs"], ["dlq"], ["triggers"], ["breakers"], ["keys", "list"]],
  ...[
    ["audit", "verify"],
    ["top", "--json"],
    ["queues", "pause", "mail"],
  ],
  ["explain", "01890a5d-ac96-774b-bcce-b302099a8057"],
];

async function refused(said: string): Promise<void> {
  for (const args of looking) {
    const { code, out, err } = await runHere(...args);
    expect([args, code, out]).toEqual([args, 1, ""]);
    expect(err).toContain(said);
    expect(err).toContain("code:  SCHEMA_OUTDATED\nnext:  Run: npx millrace migrate\n");
  }
}

test("an empty database stays empty, and an older schema stays as old as it is", async () => {
  await refused('There is no schema "millrace" in this database.');
  expect(await ask("select from pg_namespace where nspname = 'millrace'")).toHaveLength(0);

  await (await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" })).stop();
  expect((await runHere("queues")).code).toBe(0);
  const newest = "version = (select max(version) from millrace.migration where version < 1000)";
  await ask(`delete from millrace.migration where ${newest}`);
  const before = await ask("select version from millrace.migration order by 1");
  await refused('Schema "millrace" lacks 1 migration of this version.');
  expect(await ask("select version from millrace.migration order by 1")).toEqual(before);
});
