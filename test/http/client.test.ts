// The client over HTTP, against the service itself.

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { readImportGraph } from "../../scripts/import-graph.mjs";
import { HttpClient } from "../../src/client.ts";
import { defineJob, NonRetryableError } from "../../src/index.ts";
import { adminKey, useHttp } from "../support/http.ts";
import { newQueue, refusal } from "../support/instance.ts";
import { clientEnqueueSuite } from "./client-enqueue.ts";

const http = useHttp();
const connect = (more: Partial<ConstructorParameters<typeof HttpClient>[0]> = {}) =>
  new HttpClient({ url: http.baseUrl, key: adminKey, ...more });

const greet = (queue: string) =>
  defineJob({
    type: "greet",
    queue,
    payload: z.object({ name: z.string() }),
    run: ({ payload }) => `Hello, ${payload.name}!`,
  });

/** The call reaches the service; its answer does not reach us, the first few times. */
function losing(answers: number): typeof fetch {
  let left = answers;
  return async (...call) => {
    const answer = await fetch(...call);
    if (left-- > 0) throw new TypeError("the answer was lost");
    return answer;
  };
}

describe("what the client enqueues", () => clientEnqueueSuite(http));

describe("the client", () => {
  test("enqueues by the same definitions, waits, and gives the result", async () => {
    const job = greet(newQueue());
    const client = connect();
    await http.work([job]);
    const { id, existing } = await client.enqueue(job, { name: "Ada" }, { priority: "high" });
    expect(existing).toBe(false);
    expect(await client.result(id)).toBe("Hello, Ada!");
    expect((await client.get(id))?.payloadMasked).toBe(true);
    const read = await client.get(id, { payload: true });
    expect(read).toMatchObject({
      ...{ id, state: "completed", payload: { name: "Ada" }, result: "Hello, Ada!", weight: 0 },
      ...{ timeline: [{ attempt: 1, outcome: "completed" }], payloadMasked: false },
    });
    expect(read?.createdAt).toBeInstanceOf(Date);
    const producer = connect({ key: await http.key("producer") });
    expect(await producer.result(id)).toBe("Hello, Ada!");
    expect(await client.get(crypto.randomUUID())).toBe(null);
    // @ts-expect-error the definition says what its payload is
    const wrong = () => client.enqueue(job, { nobody: 1 });
    expect(wrong).toBeTypeOf("function");
  });

  test("stores a job once, however often the answer is lost", async () => {
    const queue = newQueue();
    const client = connect({ fetch: losing(3) });
    const first = await client.enqueue(greet(queue), { name: "Ada" });
    expect(first.existing).toBe(true);
    const many = await connect({ fetch: losing(1) }).enqueueMany(
      greet(queue),
      ["Bo", "Cleo"].map((name) => ({ name })),
    );
    expect(many).toHaveLength(2);
    const rows = await http.query(
      "select from millrace.job j join millrace.queue q on q.id = j.queue_id where q.name = $1",
      [queue],
    );
    expect(rows).toHaveLength(3);
  });

  test("repeats nothing that is not safe to repeat, and tells codes apart", async () => {
    const queue = newQueue();
    const client = connect();
    const { id } = await client.enqueue(greet(queue), { name: "Ada" }, { key: queue });
    expect((await client.findByKey(queue))?.id).toBe(id);
    const conflict = await refusal(client.enqueue(greet(queue), { name: "Bo" }, { key: queue }));
    expect(conflict).toMatchObject({ code: "IDEMPOTENCY_CONFLICT", details: { existing_id: id } });
    expect(await client.cancel(id, "not needed")).toBe("cancelled");
    expect(await client.cancel(id)).toBe("ended");
    const lost = connect({ fetch: losing(1) });
    expect((await refusal(lost.reprocess(id, "again"))).code).toBe("SERVICE_UNAVAILABLE");
    expect((await refusal(client.reprocess(id, "again"))).code).toBe("ILLEGAL_TRANSITION");
    expect((await refusal(connect({ key: "nobody" }).get(id))).code).toBe("UNAUTHENTICATED");
    const nowhere = connect({ url: "http://127.0.0.1:9", tries: 2 });
    expect((await refusal(nowhere.get(id))).code).toBe("SERVICE_UNAVAILABLE");
    await client.delete(id, "tidy");
    expect((await client.get(id))?.state).toBe("deleted");
  });

  test("does what operators do", async () => {
    const queue = newQueue();
    const client = connect();
    const made = await client.configureQueue(queue, { maxAttempts: 3, description: "letters" });
    expect(made).toMatchObject({ name: queue, tenant: "", maxAttempts: 3, description: "letters" });
    expect(await client.configureQueue(queue, { capacity: 5 })).toMatchObject({ capacity: 5 });
    expect((await client.pauseQueue(queue)).paused).toBe(true);
    expect((await client.resumeQueue(queue)).paused).toBe(false);
    expect((await client.queues()).some(({ name }) => name === queue)).toBe(true);
    const hopeless = defineJob({
      type: "hopeless",
      queue,
      run() {
        throw new NonRetryableError("no such account");
      },
    });
    await http.work([hopeless], { name: queue });
    expect((await client.workers()).some(({ name }) => name === queue)).toBe(true);
    const [one, two] = await client.enqueueMany(hopeless, [1, 2]);
    expect((await refusal(client.result(one?.id ?? ""))).code).toBe("JOB_FAILED");
    await client.waitFor(two?.id ?? "");
    const letters = await client.deadLetters({ queue });
    expect(letters.map(({ errorMessage }) => errorMessage)).toEqual(
      Array(2).fill("no such account"),
    );
    await client.discard(one?.id ?? "", "a test");
    const again = await client.reprocess(two?.id ?? "", "once more");
    expect((await client.get(again.id))?.reprocessOf).toBe(two?.id);
    expect(await client.deadLetters({ queue, type: "other" })).toEqual([]);
  });

  test("finds jobs by a label of their type", async () => {
    const queue = newQueue();
    const job = defineJob({ type: "paid", queue, labels: ["order.id"] });
    const client = connect();
    const { id } = await client.enqueue(job, { order: { id: queue } }, { reference: "r" });
    const [found, ...others] = await client.findByLabel("order.id", queue);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ id, queue, type: "paid", state: "ready", reference: "r" });
    expect(await client.findByLabel("order.id", queue, { tenant: "other" })).toEqual([]);
  });

  test("explains jobs, works breakers, and looks after tenants until one is erased", async () => {
    const client = connect();
    const queue = newQueue();
    const job = greet(queue);
    const { id } = await client.enqueue(job, { name: "Ada" }, { tenant: queue, delayMs: 60_000 });
    expect(await client.explain(id)).toMatchObject({ job: id, state: "scheduled" });
    expect(await client.explain(id)).toMatchObject({ reason: "delayed", holders: [] });
    expect((await client.explain(id)).until).toBeInstanceOf(Date);
    await http.millrace.breakers.configure(queue, {});
    expect(await client.breakers.open(queue, "down")).toMatchObject({
      state: "OPEN",
      reason: "down",
    });
    expect((await client.breakers.list()).map(({ name }) => name)).toContain(queue);
    expect(await client.breakers.close(queue, "up")).toMatchObject({
      state: "CLOSED",
      openings: 1,
    });
    expect(await client.breakers.reset(queue, "tidy")).toMatchObject({ openings: 0 });
    expect(await client.breakers.get(newQueue())).toBe(null);
    const rateLimit = { limit: 5, windowMs: 1_000 };
    const settings = { weight: 2, rateLimit, capacity: 100, warnDepth: null };
    expect(await client.tenants.configure(queue, settings)).toMatchObject(settings);
    expect((await client.tenants.pause(queue)).paused).toBe(true);
    expect((await client.tenants.resume(queue)).paused).toBe(false);
    const own = (await client.tenants.list()).find(({ name }) => name === queue);
    expect(own).toEqual({ name: queue, ...settings, paused: false });
    const erased = await client.tenants.erase(queue, "they left");
    expect(erased).toEqual({ waiting: 1, deadLetters: 0, history: 0 });
    expect(await client.get(id, { payload: true })).toMatchObject({
      state: "deleted",
      payload: null,
    });
  });

  test("needs nothing of Node", () => {
    const graph = readImportGraph(join(import.meta.dirname, "..", ".."), "src");
    const reached = new Set(["src/client.ts"]);
    for (const file of reached)
      for (const { target, specifier, kind } of graph.get(file) ?? []) {
        if (kind === "type") continue;
        expect(target, `${file} imports ${specifier}`).not.toBe(null);
        reached.add(target as string);
      }
    expect(reached.size).toBeGreaterThan(5);
  });
});
