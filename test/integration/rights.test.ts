// Roles that have exactly the rights which the guide grants them, and connects that PostgreSQL refuses.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { createTestMillrace } from "../../src/testing.ts";
import { runCommand } from "../support/command-line.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();
const guide = readFileSync("docs/guides/security.md", "utf8");
const section = guide.slice(guide.indexOf("## Rights in PostgreSQL"));
const grants = [...section.matchAll(/```sql\n([^`]*)```/g)].map(([, sql]) => sql ?? "");
const made: string[] = [];

/** A login of its own with the rights of the guide's nth block. */
async function roleOf(nth: number): Promise<string> {
  const sql = grants[nth] ?? "";
  const documented = sql.match(/to (millrace_\w+);/)?.[1] ?? "";
  const role = `${documented}_${randomUUID().slice(0, 8)}`;
  await instances.query(`create role ${role} login password 'secret'`);
  made.push(role);
  for (const one of sql.replaceAll(documented, role).split(";\n")) await instances.query(one);
  const url = new URL(instances.url);
  url.username = role;
  url.password = "secret";
  return url.href;
}

afterAll(async () => {
  for (const role of made) await instances.query(`drop owned by ${role}; drop role ${role}`);
});

describe("a role that owns nothing", () => {
  it("works, manages and gets partitions with a worker's rights", async () => {
    expect(grants).toHaveLength(3);
    const millrace = await instances.connect({ databaseUrl: await roleOf(0) });
    const queue = newQueue();
    await millrace.configureQueue(queue, { retentionDays: 11, keyConcurrency: 1, fair: true });
    const job = defineJob({
      type: "rights",
      queue,
      maxAttempts: 2,
      retry: () => 1,
      run: ({ payload, attempt }) => {
        if (payload === "dies" || (payload === "retries" && attempt === 1)) throw new Error("no");
        return payload;
      },
    });
    await millrace.work([job]);
    await millrace.manage();
    const ids = [
      (await millrace.enqueue(job, "plain")).id,
      (await millrace.enqueue(job, "retries", { key: "k", delayMs: 1 })).id,
      (await millrace.enqueue(job, "lane", { limitKey: "l", tenant: "acme" })).id,
      (await millrace.enqueue(job, "dies")).id,
    ];
    const ended = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    expect(ended.map(({ state }) => state)).toEqual([
      "completed",
      "completed",
      "completed",
      "dead",
    ]);
    const [dead = ""] = ids.slice(-1);
    await millrace.discard(dead, "seen");
  });

  it("leaves alone what it may not drop, and prunes the rest", async () => {
    await instances.query("select millrace.attach_history(30::smallint, date '2020-01-01', 1)");
    const millrace = await instances.connect({ databaseUrl: await roleOf(0) });
    const session = millrace.store.upkeep();
    expect(await session.prune({ auditDays: null })).toMatchObject({ partitions: 0 });
    await session.vacuum();
    await session.close();
    const owner = instances.millrace.store.upkeep();
    expect(await owner.prune({ auditDays: null })).toMatchObject({ partitions: 1 });
    await owner.close();
  });

  it("enqueues with a producer's rights, and may not take a job", async () => {
    const millrace = await instances.connect({ databaseUrl: await roleOf(1) });
    const queue = newQueue();
    const job = defineJob({
      type: "rights.producer",
      queue,
      rateLimit: { limit: 100, windowMs: 1_000, key: () => "all" },
    });
    const { id } = await millrace.enqueue(job, 1, { key: queue });
    expect(await millrace.enqueue(job, 1, { key: queue })).toMatchObject({ id, existing: true });
    await millrace.enqueueMany(job, [2, 3]);
    await millrace.enqueue(job, 4, { delayMs: 1_000, reference: "r", orderingKey: "o" });
    expect(await millrace.get(id)).toMatchObject({ state: "ready", payload: 1 });
    const url = millrace.databaseUrl;
    await expect(queryAs(url, "delete from millrace.job")).rejects.toMatchObject({ code: "42501" });
    await expect(queryAs(url, "select * from millrace.api_key")).rejects.toMatchObject({
      code: "42501",
    });
  });

  it("calls the SQL function with the rights that are documented for it", async () => {
    const url = await roleOf(2);
    const queue = newQueue();
    await instances.millrace.configureQueue(queue, { fair: true, keyConcurrency: 2 });
    const call = (more: string) =>
      queryAs(
        url,
        `select millrace.enqueue('rights.sql', '{"a": 1}', tenant => 'acme'${more}) as id`,
      );
    const named = `, queue => '${queue}', key => 'k'`;
    const [first] = await call(named);
    expect(await call(named)).toEqual([first]);
    await call(`, queue => '${queue}', limit_key => 'l', delay => '1 hour', reference => 'r'`);
    await call(`, queue => '${newQueue()}'`);
  });
});

async function queryAs(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

describe("a connect that PostgreSQL refuses", () => {
  let stranger = "";
  beforeAll(async () => {
    stranger = `stranger_${randomUUID().slice(0, 8)}`;
    await instances.query(`create role ${stranger} login`);
    made.push(stranger);
  });

  const urls: readonly (readonly [string, string, (url: URL) => void])[] = [
    ["no such database", "DATABASE_REFUSED", (url) => (url.pathname = "/there_is_none")],
    ["no such role", "DATABASE_REFUSED", (url) => (url.username = "nobody_there")],
    ["no rights", "DATABASE_REFUSED", (url) => (url.username = stranger)],
    ["no port to try", "DATABASE_UNAVAILABLE", (url) => (url.port = "1")],
  ];

  it.each(urls)("says what to do: %s", async (_, code, change) => {
    const url = new URL(instances.url);
    change(url);
    const error = await refusal(Millrace.connect({ databaseUrl: url.href, logLevel: "silent" }));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(/^PostgreSQL (refused|cannot be reached): .+/);
    const inTest = await refusal(createTestMillrace({ databaseUrl: url.href }));
    expect([inTest.code, inTest.message.split(":")[0]]).toEqual([
      code,
      error.message.split(":")[0],
    ]);
  });

  it("names no password where the URL cannot be read", async () => {
    const databaseUrl = "postgres://me:hunter2@localhost:99999/app";
    const error = await refusal(Millrace.connect({ databaseUrl, logLevel: "silent" }));
    expect(error.code).toBe("OPTION_INVALID");
    expect(`${error.message} ${String(error.cause)}`).not.toContain("hunter2");
  });

  it("is explained on the command line too, and is no bug of ours", async () => {
    const url = new URL(instances.url);
    url.pathname = "/there_is_none";
    const unreadable = "postgres://me:hunter2@localhost:99999/app";
    for (const [databaseUrl, code] of [
      [url.href, "DATABASE_REFUSED"],
      [unreadable, "OPTION_INVALID"],
    ] as const) {
      const { code: exit, err } = await runCommand(["migrate"], { DATABASE_URL: databaseUrl });
      expect(exit).toBe(1);
      expect(err).toContain(`code:  ${code}`);
      expect(err).toContain("next:  ");
      expect(err).not.toMatch(/bug in Millrace|hunter2/);
    }
  });
});
