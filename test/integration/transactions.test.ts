import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import { CamelCasePlugin, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { fromDrizzle, fromKysely, fromPostgresJs, type Transaction } from "../../src/postgres.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";

type InTransaction = (body: (tx: Transaction) => Promise<void>) => Promise<void>;

const instances = useMillrace();
const closers: (() => Promise<unknown>)[] = [];
const drivers: Record<string, InTransaction> = {};

beforeAll(() => {
  const { url } = instances;
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  const camel = postgres(url, { max: 2, onnotice: () => {}, transform: postgres.camel });
  const kysely = new Kysely<Record<string, never>>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin()],
  });
  closers.push(
    () => pool.end(),
    () => sql.end(),
    () => camel.end(),
  );
  drivers.pg = async (body) => {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await body(client);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  };
  drivers["postgres.js"] = async (body) => void (await sql.begin((tx) => body(fromPostgresJs(tx))));
  drivers["postgres.js, camel case"] = async (body) =>
    void (await camel.begin((tx) => body(fromPostgresJs(tx))));
  drivers["Kysely, camel case"] = (body) =>
    kysely.transaction().execute((trx) => body(fromKysely(trx)));
  drivers["Drizzle on pg"] = (body) => drizzleOnPg(pool).transaction((tx) => body(fromDrizzle(tx)));
  drivers["Drizzle on postgres.js"] = (body) =>
    drizzleOnPostgresJs(sql).transaction((tx) => body(fromDrizzle(tx)));
});

afterAll(() => Promise.all(closers.map((close) => close())));

const names = [
  "pg",
  "postgres.js",
  "postgres.js, camel case",
  "Kysely, camel case",
  "Drizzle on pg",
  "Drizzle on postgres.js",
];

const jobIn = (queue: string) =>
  defineJob({ type: "tx.greet", queue, run: ({ payload }) => ({ greeted: payload }) });

const inTransaction = (driver: string, body: (tx: Transaction) => Promise<void>) => {
  const run = drivers[driver];
  if (run === undefined) throw new Error(`no driver ${driver}`);
  return run(body);
};

/** Rolls back by throwing. */
async function rolledBack(driver: string, body: (tx: Transaction) => Promise<void>) {
  const undone = new Error("changed my mind");
  const call = inTransaction(driver, async (tx) => {
    await body(tx);
    throw undone;
  });
  await expect(call).rejects.toBe(undone);
}

describe.each(names)("a job enqueued in a transaction of %s", (driver) => {
  it("is there and runs once the transaction commits, and not before", async () => {
    const { millrace } = instances;
    const greet = jobIn(newQueue());
    await instances.work([greet]);
    let id = "";
    await inTransaction(driver, async (tx) => {
      const text = `O'Brien "quoted" \\ {curly,NULL} – ünïcode`;
      ({ id } = await millrace.enqueue(greet, { text, none: null }, { tx, tenant: "acme" }));
      expect(await millrace.get(id)).toBeNull();
    });
    expect(await millrace.result(id)).toEqual({
      greeted: { text: `O'Brien "quoted" \\ {curly,NULL} – ünïcode`, none: null },
    });
    expect(await millrace.get(id)).toMatchObject({ tenant: "acme", state: "completed" });
  });

  it("was never there when the transaction rolls back", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    let id = "";
    await rolledBack(driver, async (tx) => {
      ({ id } = await millrace.enqueue(jobIn(queue), { a: 1 }, { tx, key: `undone-${queue}` }));
    });
    expect(await millrace.get(id)).toBeNull();
    expect(await millrace.findByKey(`undone-${queue}`)).toBeNull();
    expect(await enqueuedIn(millrace, queue)).toBe(0);
  });

  it("is the old job for the same key and request, and refused for a different one", async () => {
    const { millrace } = instances;
    const greet = jobIn(newQueue());
    const key = `key-${greet.queue}`;
    const first = await millrace.enqueue(greet, { n: 1 }, { key });
    await inTransaction(driver, async (tx) => {
      const again = await millrace.enqueue(greet, { n: 1 }, { key, tx });
      expect(again).toEqual({ id: first.id, existing: true });
      const error = await refusal(millrace.enqueue(greet, { n: 2 }, { key, tx }));
      expect(error.code).toBe("IDEMPOTENCY_CONFLICT");
      expect(error.details).toMatchObject({ existingId: first.id });
    });
    expect(await enqueuedIn(millrace, greet.queue)).toBe(1);
  });

  it("may wait for its time", async () => {
    const { millrace } = instances;
    const greet = jobIn(newQueue());
    await instances.work([greet]);
    const ids: string[] = [];
    await inTransaction(driver, async (tx) => {
      ids.push((await millrace.enqueue(greet, 1, { tx, delayMs: 60_000 })).id);
      ids.push((await millrace.enqueue(greet, 2, { tx, delayMs: 50 })).id);
    });
    const [later = "", soon = ""] = ids;
    expect(await millrace.result(soon)).toEqual({ greeted: 2 });
    expect(await millrace.get(later)).toMatchObject({ state: "scheduled" });
  });

  it("comes with all others of enqueueMany, also when they are more than one batch", async () => {
    const { millrace } = instances;
    const greet = jobIn(newQueue());
    const payloads = Array.from({ length: 1_200 }, (_, n) => n);
    await rolledBack(driver, async (tx) => {
      await millrace.enqueueMany(greet, payloads, { tx });
    });
    expect(await enqueuedIn(millrace, greet.queue)).toBe(0);
    await inTransaction(driver, async (tx) => {
      const made = await millrace.enqueueMany(greet, payloads, { tx });
      expect(new Set(made.map(({ id }) => id)).size).toBe(1_200);
    });
    expect(await enqueuedIn(millrace, greet.queue)).toBe(1_200);
  });

  it("is undone with all others of enqueueMany when one is refused and the caller goes on", async () => {
    const { millrace } = instances;
    const greet = jobIn(newQueue());
    await millrace.enqueue(greet, "taken", { key: `${greet.queue}-2` });
    await inTransaction(driver, async (tx) => {
      const keyed = (_: unknown, n: number) => ({ tx, key: `${greet.queue}-${n}` });
      const error = await refusal(millrace.enqueueMany(greet, ["a", "b", "c"], keyed));
      expect(error.code).toBe("IDEMPOTENCY_CONFLICT");
    });
    expect(await enqueuedIn(millrace, greet.queue)).toBe(1);
    expect(await millrace.findByKey(`${greet.queue}-0`)).toBeNull();
  });
});

describe("a tx that does not answer with the statement's rows", () => {
  const answers: readonly unknown[] = [
    { rows: [] },
    [],
    { rows: [{ id: "zzz" }] },
    { rows: [{}] },
    { rows: "none" },
    undefined,
    5,
  ];
  it.each(answers.map((answer) => [JSON.stringify(answer), answer]))(
    "is named: %s",
    async (_, answer) => {
      const tx = { query: async () => answer } as unknown as Transaction;
      const job = jobIn(newQueue());
      for (const options of [{ tx }, { tx, key: "k" }]) {
        const error = await refusal(instances.millrace.enqueue(job, 1, options));
        expect(error.code).toBe("OPTION_INVALID");
        expect(error.message).toMatch(/^tx\.query did not answer with the rows of its statement/);
      }
    },
  );
});
