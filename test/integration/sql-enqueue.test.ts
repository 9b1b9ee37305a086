import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob, type Millrace } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();
let client: pg.Client;

beforeAll(async () => {
  client = new pg.Client({ connectionString: instances.url });
  await client.connect();
});
afterAll(() => client.end());

interface Args {
  type?: string;
  payload?: unknown;
  queue?: string;
  [other: string]: unknown;
}

/** `select millrace.enqueue(type => …, …)` with just these arguments. */
async function sqlEnqueue(args: Args, schema = "millrace"): Promise<string> {
  const { payload = {}, ...rest } = args;
  const given = Object.entries({ type: "sql.job", ...rest });
  const list = given.map(([name], i) => `${name} => $${i + 2}`).join(", ");
  const { rows } = await client.query<{ id: string }>(
    `select ${schema}.enqueue(payload => $1::jsonb, ${list}) as id`,
    [JSON.stringify(payload), ...given.map(([, value]) => value)],
  );
  return rows[0]?.id ?? "";
}

const sqlRefusal = (args: Args) =>
  sqlEnqueue(args).then(
    (id) => ({ code: "accepted", message: id, detail: "" }),
    ({ code, message, detail }) => ({ code, message, detail }),
  );

async function depthOf(millrace: Millrace, queue: string) {
  return (await millrace.queues()).find(({ name }) => name === queue)?.counts.depth;
}

const echo = (queue: string, type = "sql.job") =>
  defineJob({ type, queue, run: ({ payload, job }) => ({ payload, meta: job.meta }) });

describe("millrace.enqueue in SQL", () => {
  it("makes a job like any other, in a queue that it creates", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const id = await sqlEnqueue({
      queue,
      payload: { b: 1, a: ["ü", null, { x: 1.5 }] },
      tenant: "acme",
      priority: 0,
      reference: "order-7",
      correlation_id: "c-1",
      max_attempts: 3,
    });
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(
      Math.abs(Number.parseInt(id.replace("-", "").slice(0, 12), 16) - Date.now()),
    ).toBeLessThan(600_000);
    expect(await millrace.get(id)).toMatchObject({
      state: "ready",
      queue,
      tenant: "acme",
      weight: 0,
      maxAttempts: 3,
      reference: "order-7",
      correlationId: "c-1",
      payload: { b: 1, a: ["ü", null, { x: 1.5 }] },
      meta: { source: "sql" },
    });
    expect(await depthOf(millrace, queue)).toBe(1);
    await instances.work([echo(queue)]);
    expect(await millrace.result(id)).toMatchObject({ payload: { b: 1 } });
    expect(await depthOf(millrace, queue)).toBe(0);
  });

  it("wakes a worker that is asleep, for jobs at once and for delayed ones", async () => {
    // A schema of its own: no other scheduler makes the delayed job ready.
    const schema = "mr_sleeper";
    const sleeper = await instances.connect({ schema, pollMs: 600_000 });
    const queue = newQueue();
    await sleeper.work([echo(queue)]);
    await sleeper.result((await sleeper.enqueue(echo(queue), "first")).id);
    const now = await sqlEnqueue({ queue, payload: "now" }, schema);
    expect(await sleeper.result(now)).toMatchObject({ payload: "now" });
    const soon = await sqlEnqueue({ queue, payload: "soon", delay: "50 ms" }, schema);
    expect(await sleeper.result(soon)).toMatchObject({ payload: "soon" });
  });

  it("belongs to the caller's transaction", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    await client.query("begin");
    const undone = await sqlEnqueue({ queue, key: queue });
    await client.query("rollback");
    expect(await millrace.get(undone)).toBeNull();
    expect(await millrace.findByKey(queue)).toBeNull();
    expect((await millrace.queues()).map(({ name }) => name)).not.toContain(queue);

    await client.query("begin");
    const kept = await sqlEnqueue({ queue, key: queue });
    expect(await millrace.get(kept)).toBeNull();
    await client.query("commit");
    expect(await millrace.get(kept)).toMatchObject({ state: "ready", idempotencyKey: queue });
  });

  it("schedules a delayed job and stores its expiry", async () => {
    const id = await sqlEnqueue({ queue: newQueue(), delay: "1 hour", expires_in: "2 hours" });
    const job = await instances.millrace.get(id);
    expect(job?.state).toBe("scheduled");
    expect(Number(job?.dueAt) - Number(job?.createdAt)).toBe(3_600_000);
    expect(Number(job?.expiresAt) - Number(job?.createdAt)).toBe(7_200_000);
  });

  it("takes the number of attempts from the queue when the call names none", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const usual = await sqlEnqueue({ queue });
    await millrace.configureQueue(queue, { maxAttempts: 2 });
    const own = await sqlEnqueue({ queue });
    expect(await millrace.get(usual)).toMatchObject({ maxAttempts: 5 });
    expect(await millrace.get(own)).toMatchObject({ maxAttempts: 2 });
  });

  it("works under another schema name and wakes that schema's workers", async () => {
    const other = await instances.connect({ schema: "mr_elsewhere", pollMs: 600_000 });
    const queue = newQueue();
    await other.work([echo(queue)]);
    await other.result((await other.enqueue(echo(queue), "first")).id);
    const id = await sqlEnqueue({ queue, payload: 7 }, "mr_elsewhere");
    expect(await other.result(id)).toMatchObject({ payload: 7 });
    expect(await instances.millrace.get(id)).toBeNull();
  });
});

describe("an idempotency key in SQL", () => {
  it("gives the old job for the same request and MR409 for a different one", async () => {
    const queue = newQueue();
    const id = await sqlEnqueue({ queue, key: queue, payload: { n: 1, m: 2 } });
    expect(await sqlEnqueue({ queue, key: queue, payload: { m: 2, n: 1 } })).toBe(id);
    const error = await sqlRefusal({ queue, key: queue, payload: { n: 2 } });
    expect(error.code).toBe("MR409");
    expect(error.message).toMatch(/^IDEMPOTENCY_CONFLICT: /);
    expect(error.detail).toBe(id);
    expect(await enqueuedIn(instances.millrace, queue)).toBe(1);
    const elsewhere = await sqlEnqueue({ queue, key: queue, payload: { n: 2 }, tenant: "other" });
    expect(elsewhere).not.toBe(id);
  });

  it("can be used again when it has expired", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    await millrace.configureQueue(queue, { keyTtlSeconds: 60 });
    const old = await sqlEnqueue({ queue, key: queue });
    await instances.query(
      "update millrace.unique_name set expires_at = now() - interval '1 s' where job_id = $1",
      [old],
    );
    expect(await sqlEnqueue({ queue, key: queue, payload: "new" })).not.toBe(old);
  });

  it("means the same request in TypeScript, whatever the payload", async () => {
    const { millrace } = instances;
    const job = echo(newQueue());
    const numbers = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      fc.constantFrom(1e15, 1e20, 1e21, 123456789012345680000, 1e-5, 1e-6, 1.5e-7, -0, 5e-324),
    );
    const texts = fc.oneof(
      fc.string({ unit: "binary" }).filter((text) => !text.includes("\u0000")),
      fc.constantFrom('\b\f\n\r\t"\\/\u0001\u001f\u007f\u2028', "😀", "10", "9", "4294967295"),
    );
    const { payload } = fc.letrec((tie) => ({
      payload: fc.oneof(
        { maxDepth: 3 },
        numbers,
        texts,
        fc.constantFrom(true, false, null),
        fc.array(tie("payload"), { maxLength: 4 }),
        fc.dictionary(
          fc.oneof(
            texts,
            fc.constantFrom("a", "B", "ä", "10", "9", "01", "😀", "\uff5a", "\ue000"),
          ),
          tie("payload"),
          { maxKeys: 5 },
        ),
      ),
    }));
    let made = 0;
    await fc.assert(
      fc.asyncProperty(payload, async (value) => {
        const key = `${job.queue}-${made++}`;
        const first = await millrace.enqueue(job, value, { key }).catch((error) => error);
        // Random texts may look like secrets; those are refused and prove nothing here.
        fc.pre(!(first instanceof Error));
        expect(await sqlEnqueue({ queue: job.queue, key, payload: value })).toBe(first.id);
        expect(await sqlRefusal({ queue: job.queue, key, payload: [value] })).toMatchObject({
          code: "MR409",
        });
      }),
      { numRuns: 200 },
    );
  });

  it("is recognised by TypeScript when SQL was first", async () => {
    const { millrace } = instances;
    const job = echo(newQueue());
    const id = await sqlEnqueue({ queue: job.queue, key: job.queue, payload: { z: 1, a: [2] } });
    const again = await millrace.enqueue(job, { a: [2], z: 1 }, { key: job.queue });
    expect(again).toEqual({ id, existing: true });
    const error = await refusal(millrace.enqueue(job, { a: [3], z: 1 }, { key: job.queue }));
    expect(error.code).toBe("IDEMPOTENCY_CONFLICT");
  });
});

describe("SQL refuses with a code", () => {
  it("a reference that is taken in a queue of unique references", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    await millrace.configureQueue(queue, { enforceUniqueReference: true });
    await sqlEnqueue({ queue, reference: "r-1" });
    const error = await sqlRefusal({ queue, reference: "r-1", key: queue });
    expect(error).toMatchObject({ code: "MR409" });
    expect(error.message).toMatch(/^REFERENCE_TAKEN: /);
    expect(await millrace.findByKey(queue)).toBeNull();
    expect(await enqueuedIn(millrace, queue)).toBe(1);
    const taken = await refusal(millrace.enqueue(echo(queue), 1, { reference: "r-1" }));
    expect(taken.code).toBe("REFERENCE_TAKEN");
  });

  it("a queue that is full or does not accept jobs", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    await millrace.configureQueue(queue, { capacity: 1 });
    await sqlEnqueue({ queue });
    const full = await sqlRefusal({ queue, key: queue });
    expect(full).toMatchObject({ code: "MR429", message: expect.stringMatching(/^QUEUE_FULL: /) });
    expect(await millrace.findByKey(queue)).toBeNull();
    await millrace.configureQueue(queue, { capacity: null, isActive: false });
    const closed = await sqlRefusal({ queue });
    expect(closed.code).toBe("MR409");
    expect(closed.message).toMatch(/^QUEUE_INACTIVE: /);
    expect(await enqueuedIn(millrace, queue)).toBe(1);
  });

  it.each([
    ["MR413", "PAYLOAD_TOO_LARGE", { payload: "x".repeat(256 * 1024) }],
    ["MR400", "PAYLOAD_INVALID", { payload: JSON.parse(`${"[".repeat(66)}1${"]".repeat(66)}`) }],
    ["MR400", "PAYLOAD_INVALID", { payload: JSON.parse('{"a":[{"__proto__":1}]}') }],
    ["MR400", "OPTION_INVALID", { type: "" }],
    ["MR400", "OPTION_INVALID", { tenant: "a\nb" }],
    ["MR400", "OPTION_INVALID", { queue: "q".repeat(201) }],
    ["MR400", "OPTION_INVALID", { priority: 101 }],
    ["MR400", "OPTION_INVALID", { max_attempts: 0 }],
    ["MR400", "OPTION_INVALID", { delay: "-1 s" }],
    ["MR400", "OPTION_INVALID", { delay: "1000000 years" }],
    ["MR400", "OPTION_INVALID", { expires_in: "0 s" }],
    ["MR400", "OPTION_INVALID", { expires_in: "-1000000 years" }],
  ])("%s %s, case %#", async (code, word, args) => {
    const queue = newQueue();
    const error = await sqlRefusal({ queue, ...args });
    expect(error.code).toBe(code);
    expect(error.message.startsWith(`${word}: `)).toBe(true);
    expect(await enqueuedIn(instances.millrace, queue)).toBe(0);
  });

  it("a number that JavaScript cannot hold", async () => {
    const call = client.query("select millrace.enqueue('t', '{\"n\": [1e400]}')");
    await expect(call).rejects.toMatchObject({ code: "MR400" });
  });
});
