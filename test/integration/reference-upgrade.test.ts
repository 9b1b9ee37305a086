// References counted for all tenants of a queue together once. Names from then go on counting for their own
// tenant, and processes of that version may run on beside newer ones.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { bookkeeping, loadMigrations } from "../../src/store/postgres/migrator.ts";
import { Renderer } from "../../src/store/postgres/statement.ts";
import { newQueue, refusal } from "../support/instance.ts";
import { createDatabase } from "../support/postgres.ts";

const job = defineJob({ type: "t", queue: newQueue() });
let database: Awaited<ReturnType<typeof createDatabase>>;
let client: pg.Client;
let millrace: Millrace;
let queueId = 0;

/** As the version before added a job: the name of its reference and the job in one statement. */
const addAsBefore = async (tenant: string, reference: string): Promise<boolean> => {
  const { rows } = await client.query(
    `with named as (
      insert into millrace.unique_name (scope, key, job_id) values ('ref:' || $1::int, $2, $3)
      on conflict (scope, key) do nothing returning job_id
    ),
    inserted as (
      insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload, reference)
      select job_id, nextval('millrace.flush_seq') * 1024, now(), now(), $1, 5, 1, 't', $4, 'null', $2 from named
    )
    select job_id from named`,
    [queueId, reference, randomUUID(), tenant],
  );
  return rows.length === 1;
};

const add = (tenant: string, reference: string) =>
  millrace.enqueue(job, null, { tenant, reference });
const codeOf = async (tenant: string, reference: string) =>
  (await refusal(add(tenant, reference))).code;

beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const renderer = new Renderer("millrace");
  await client.query(bookkeeping(renderer));
  for (const { version, name, sql } of await loadMigrations()) {
    if (name === "references_of_tenants") break;
    await client.query(renderer.text(sql));
    await client.query("insert into millrace.migration (version, name) values ($1, $2)", [
      version,
      name,
    ]);
  }
  const { rows } = await client.query(
    "insert into millrace.queue (tenant, name, enforce_unique_reference) values ('', $1, true) returning id",
    [job.queue],
  );
  queueId = rows[0].id;
  expect(await addAsBefore("acme", "old")).toBe(true);
  expect(await addAsBefore("globex", "old")).toBe(false);
  millrace = await Millrace.connect({ databaseUrl: database.url, logLevel: "silent" });
});
afterAll(async () => {
  await millrace.stop();
  await client.end();
  await database.drop();
});

it("a reference from before counts for its tenant, and for no other", async () => {
  expect(await codeOf("acme", "old")).toBe("REFERENCE_TAKEN");
  await add("globex", "old");
  expect(await codeOf("globex", "old")).toBe("REFERENCE_TAKEN");
});

it("what a process of the version before adds meanwhile counts as well", async () => {
  expect(await addAsBefore("acme", "meanwhile")).toBe(true);
  expect(await codeOf("acme", "meanwhile")).toBe("REFERENCE_TAKEN");
  await add("globex", "meanwhile");
});

it("what was added since is busy to such a process, for the same tenant only", async () => {
  await add("acme", "new");
  await expect(addAsBefore("acme", "new")).rejects.toMatchObject({ code: "55P03" });
  expect(await addAsBefore("globex", "new")).toBe(true);
  const { rows } = await client.query("select tenant from millrace.job where reference = 'new'");
  expect(rows.map(({ tenant }) => tenant).sort()).toEqual(["acme", "globex"]);
});

it("a reference is free again with its item, whoever added it", async () => {
  await addAsBefore("acme", "gone");
  const { rows } = await client.query("select id from millrace.job where reference = 'gone'");
  await millrace.delete(rows[0].id, "a test");
  const left = await client.query("select from millrace.unique_name where key = 'gone'");
  expect(left.rows).toHaveLength(0);
  await add("acme", "gone");
});
