// Robots and workers share the limits, keys and pauses of a queue.

import { expect, test } from "vitest";
import { defineJob, type QueueSettings } from "../../src/index.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

const http = useHttp();

async function scene(settings: QueueSettings) {
  const { millrace } = http;
  const queue = newQueue();
  const { id } = await millrace.configureQueue(queue, settings);
  const key = await http.key("robot", "acme");
  const job = defineJob({ type: "item", queue });
  const put = async (more: object = {}) =>
    (await millrace.enqueue(job, {}, { tenant: "acme", ...more })).id;
  const next = async (count = 9) => {
    const body = { queue_id: id, count };
    const { body: taken } = await http.call("POST", "/api/queue-items/next", { key, body });
    return (taken?.items ?? []) as { id: string; token: string }[];
  };
  const settle = ({ id: item, token }: { id: string; token: string }, status = "DONE") =>
    http.call("PUT", `/api/queue-items/${item}`, { key, body: { status, token } });
  return { millrace, queue, put, next, settle };
}
const idsOf = (items: readonly { id: string }[]) => items.map(({ id }) => id);

test("no more items are out at once than the queue's concurrency, and explain says who has them", async () => {
  const { millrace, put, next, settle } = await scene({ concurrency: 2 });
  const made = [await put(), await put(), await put()];
  const taken = await next();
  expect(idsOf(taken)).toEqual(made.slice(0, 2));
  expect(await next()).toEqual([]);
  const told = await millrace.explain(made[2] ?? "");
  expect(told.reason).toBe("concurrency");
  expect(told.holders.map(({ job }) => job).sort()).toEqual(made.slice(0, 2).sort());
  const [first] = taken;
  expect((await settle(first ?? { id: "", token: "" })).status).toBe(200);
  expect(idsOf(await next())).toEqual([made[2]]);
});

test("items of one ordering key come one at a time and in order, also across retries", async () => {
  const { put, next, settle, millrace, queue } = await scene({});
  await millrace.configureQueue(queue, { maxAttempts: 2 });
  const [a1, a2, b1] = [
    await put({ orderingKey: "a" }),
    await put({ orderingKey: "a" }),
    await put({ orderingKey: "b" }),
  ];
  const taken = await next();
  expect(idsOf(taken).sort()).toEqual([a1, b1].sort());
  expect(await next()).toEqual([]);
  const held = taken.find(({ id }) => id === a1) ?? { id: "", token: "" };
  await settle(held, "FAILED");
  // It waits for its next attempt, and blocks its key.
  expect((await millrace.get(a1))?.state).toBe("scheduled");
  expect(await next()).toEqual([]);
  expect((await millrace.explain(a2)).reason).toBe("order_retrying");
});

test("limit keys and throttles hold for robots", async () => {
  const limited = await scene({ keyConcurrency: 1 });
  const keys = ["x", "x", "y"];
  for (const limitKey of keys) await limited.put({ limitKey });
  expect(await limited.next()).toHaveLength(2);
  const throttled = await scene({ throttle: { limit: 2, windowMs: 86_400_000 } });
  for (let n = 0; n < 4; n++) await throttled.put();
  expect(await throttled.next()).toHaveLength(2);
  expect(await throttled.next()).toEqual([]);
});

test("a tenant that is paused gets nothing, and everything afterwards", async () => {
  const { millrace, put, next } = await scene({});
  const id = await put();
  await millrace.tenants.pause("acme");
  expect(await next()).toEqual([]);
  await millrace.tenants.resume("acme");
  expect(idsOf(await next())).toEqual([id]);
});

test("robots and workers together do not exceed a limit", async () => {
  const { millrace, queue, put, next, settle } = await scene({ concurrency: 1 });
  const [first] = [await put(), await put()];
  const [taken] = await next();
  expect(taken?.id).toBe(first);
  const order: string[] = [];
  const job = defineJob({ type: "item", queue, run: ({ job: { id } }) => void order.push(id) });
  const worker = await http.work([job]);
  const waiting = (await millrace.queues()).find(({ name }) => name === queue);
  expect(waiting?.counts.completed).toBe(0);
  expect(order).toEqual([]);
  await settle(taken ?? { id: "", token: "" });
  await millrace.result((await put()) ?? "");
  expect(order).toHaveLength(2);
  await worker.stop();
});
