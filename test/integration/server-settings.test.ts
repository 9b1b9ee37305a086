// Servers and roles with settings of their own, and a server that does not answer.

import pg from "pg";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { clientConfig } from "../../src/store/postgres/client-config.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const instances = useMillrace();

test.each(["German, DMY", "SQL, MDY", "Postgres, DMY"])(
  "a database whose dates are written in the style %s changes nothing",
  async (style) => {
    const name = new URL(instances.url).pathname.slice(1);
    await instances.query(`alter database ${pg.escapeIdentifier(name)} set datestyle = ${style}`);
    const millrace = await instances.connect();
    const job = defineJob({ type: "dated", queue: newQueue(), run: () => 1 });
    await millrace.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    expect(await millrace.waitFor(id)).toMatchObject({
      createdAt: expect.any(Date),
      finishedAt: expect.any(Date),
    });
    const made = await millrace.triggers.create({
      ...{ type: "TIME", name: "dated", cron: "@daily", job, payload: {} },
    });
    expect(made.nextFireAt).toBeInstanceOf(Date);
    for (const worker of await millrace.workers()) expect(worker.startedAt).toBeInstanceOf(Date);
    await millrace.triggers.delete(made.id);
    await instances.query(`alter database ${pg.escapeIdentifier(name)} reset datestyle`);
  },
);

test.each([
  ["a database that does not exist", (url: URL) => Object.assign(url, { pathname: "/nowhere" })],
  ["a role that does not exist", (url: URL) => Object.assign(url, { username: "nobody_here" })],
  ["a role without rights", (url: URL) => Object.assign(url, { username: "mr_without_rights" })],
])("%s is DATABASE_REFUSED, and the reason is said", async (_, change) => {
  const role = "mr_without_rights";
  await instances.query(`drop role if exists ${role}`);
  await instances.query(`create role ${role} login`);
  try {
    const databaseUrl = change(new URL(instances.url)).href;
    const error = await refusal(instances.connect({ databaseUrl, schema: "mr_elsewhere" }));
    expect(error.code).toBe("DATABASE_REFUSED");
    expect(error.message).toMatch(/PostgreSQL refused: .*(?:does not exist|permission denied)/);
  } finally {
    await instances.query(`drop role ${role}`);
  }
});

test("options in the URL are heard beside our own, which count", async () => {
  const url = new URL(instances.url);
  url.searchParams.set("options", "-c datestyle=German -c work_mem=7MB");
  url.searchParams.set("options", `${url.searchParams.get("options")} -c enable_seqscan=on`);
  const config = clientConfig({ url: url.href, name: "test", queryTimeoutMs: 10_000 });
  const client = new pg.Client(config);
  await client.connect();
  try {
    const told = await client.query(
      `select name, setting from pg_settings
      where name in ('DateStyle', 'work_mem', 'enable_seqscan', 'application_name') order by name collate "C"`,
    );
    expect(told.rows.map(({ setting }) => setting)).toEqual([
      ...["ISO, DMY", "millrace test", "off", String(7 * 1024)],
    ]);
  } finally {
    await client.end();
  }
});

test("a read-only database is DATABASE_READ_ONLY, whatever was to be written, and can be read", async () => {
  const url = new URL(instances.url);
  url.searchParams.set("options", "-c default_transaction_read_only=on");
  const databaseUrl = url.href.replaceAll("+", "%20");
  const job = defineJob({ type: "unwritten", queue: newQueue(), run: () => 1 });
  const { id } = await instances.millrace.enqueue(job, 1, { delayMs: 60_000 });
  const millrace = await instances.connect({ databaseUrl });
  expect(await millrace.get(id)).toMatchObject({ state: "scheduled" });
  for (const write of [
    () => millrace.enqueue(job, 1),
    () => millrace.enqueue(job, 1, { key: "k" }),
    () => millrace.enqueueMany(job, [1, 2]),
    () => millrace.configureQueue(job.queue, {}),
    () => millrace.cancel(id),
    () => millrace.work([job]),
    () => instances.connect({ databaseUrl, schema: "mr_unwritten" }),
  ]) {
    const error = await refusal(write());
    expect([String(write), error.code]).toEqual([String(write), "DATABASE_READ_ONLY"]);
    expect(error.message).toMatch(/standby.*default_transaction_read_only/);
    expect(error.cause).toMatchObject({ code: "25006" });
  }
});

test.each([
  ["job", "create table mr_taken.job (mine int)"],
  ["migration", "create table mr_taken.migration (mine int)"],
])("a schema that holds somebody else's table %s is SCHEMA_TAKEN", async (_, table) => {
  await instances.query("create schema mr_taken");
  try {
    await instances.query(table);
    for (const migrate of [true, false]) {
      const error = await refusal(instances.connect({ schema: "mr_taken", migrate }));
      const isSeen = migrate || table.includes("migration");
      expect(error.code).toBe(isSeen ? "SCHEMA_TAKEN" : "SCHEMA_OUTDATED");
      if (isSeen) expect(error.cause).toBeInstanceOf(pg.DatabaseError);
    }
  } finally {
    await instances.query("drop schema mr_taken cascade");
  }
});

test("a server that does not answer is DATABASE_UNAVAILABLE, whatever was asked", async () => {
  const proxy = await TcpProxy.start(instances.url);
  const millrace = await instances.connect({ databaseUrl: proxy.url, queryTimeoutMs: 200 });
  await millrace.workers();
  proxy.silence();
  for (const ask of [
    () => millrace.workers(),
    () => millrace.get("00000000-0000-7000-8000-000000000000"),
    () => millrace.triggers.list(),
    () => millrace.webhooks.list(),
  ]) {
    expect((await refusal(ask())).code).toBe("DATABASE_UNAVAILABLE");
  }
  proxy.open();
  await proxy.close();
});
