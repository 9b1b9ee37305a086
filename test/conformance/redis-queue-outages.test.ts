// What becomes of a queue when its Redis dies, stalls, forgets or is full.

import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { Events } from "../../src/runtime/events.ts";
import { heartbeatMs, RedisTrial } from "../support/redis-trial.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { anHour, drain, jobsOf, take } from "./queue-stage.ts";

const trial = RedisTrial.use();
const unavailable = expect.objectContaining({ code: "REDIS_UNAVAILABLE" });

it("keeps what it acknowledged when it is killed", async () => {
  const queue = await trial.open();
  const acknowledged: string[] = [];
  const producing = (async () => {
    for (let i = 0; ; i++) {
      await queue.enqueue(`job ${i}`);
      acknowledged.push(`job ${i}`);
    }
  })();
  await until("a hundred are in", () => acknowledged.length > 100);
  const ended = expect(producing).rejects.toEqual(unavailable);
  await trial.server.kill();
  await ended;
  await trial.server.start();
  await trial.worksAgain(queue);
  // One more may be in: its answer was lost.
  expect((await drain(queue)).slice(0, acknowledged.length)).toEqual(acknowledged);
});

it("takes nothing from the living because it was away itself", async () => {
  const [holder, other] = [await trial.open(), await trial.open()];
  await holder.enqueue("held");
  const held = await take(holder);
  await other.dequeue();
  await trial.server.kill();
  await delay(heartbeatMs * 5);
  await trial.server.start();
  await trial.worksAgain(other);
  expect(await other.dequeue()).toBeNull();
  await trial.worksAgain(holder);
  expect(await holder.ack(held)).toBe(true);
});

it("loses no item to a take whose answer did not come", async () => {
  const queue = await trial.open();
  await queue.enqueueMany([{ job: "known" }, { job: "unknown" }]);
  const known = await take(queue);
  trial.server.pause();
  await expect(queue.dequeue()).rejects.toEqual(unavailable);
  trial.server.resume();
  await trial.worksAgain(queue);
  expect(await take(queue)).toMatchObject({ job: "unknown", attempt: 1 });
  expect(await queue.ack(known)).toBe(true);
});

it("starts a connection anew on which nothing is answered any more", async () => {
  const proxy = await TcpProxy.start(trial.server.url);
  try {
    const queue = await trial.open({ url: proxy.url });
    void proxy.loseAnswer("client", "vanishing");
    const enqueued = queue.enqueue("vanishing", { id: "x" });
    await expect(enqueued).rejects.toEqual(unavailable);
    await trial.worksAgain(queue);
    // It was in, and the same id is the same item.
    expect(await queue.enqueue("again", { id: "x" })).toMatchObject({ job: "vanishing" });
    expect(await drain(queue)).toEqual(["vanishing"]);
  } finally {
    await proxy.close();
  }
});

it("repeats an ack whose answer did not come", async () => {
  const queue = await trial.open();
  await queue.enqueue("done");
  const item = await take(queue);
  await trial.server.kill();
  await expect(queue.ack(item)).rejects.toEqual(unavailable);
  await trial.server.start();
  await until("it is acked", async () => {
    const snapshot = await queue.snapshot().catch(() => undefined);
    return snapshot?.taken === 0 && snapshot.depth === 0;
  });
});

it("tells those who wait that it is gone, and of its coming and going once", async () => {
  const events = new Events();
  const told: string[] = [];
  events.on("connection.lost", () => told.push("lost"));
  events.on("connection.restored", () => told.push("restored"));
  const queue = await trial.open({ events });
  const waiting = expect(queue.dequeue({ timeoutMs: anHour })).rejects.toEqual(unavailable);
  await trial.blocking(1);
  await trial.server.kill();
  await waiting;
  expect((await queue.snapshot().catch((error) => error)).code).toBe("REDIS_UNAVAILABLE");
  await trial.server.start();
  await until("it is back", () => told.length === 2);
  expect(told).toEqual(["lost", "restored"]);
  await queue.enqueue("a");
  expect(await take(queue)).toMatchObject({ job: "a" });
});

it("is given a script again that it forgot", async () => {
  const queue = await trial.open();
  await queue.enqueue("a");
  await trial.server.command("SCRIPT", "FLUSH");
  await queue.enqueue("b");
  expect(await drain(queue)).toEqual(["a", "b"]);
});

it("loses with a flush what it held, and nothing else", async () => {
  const queue = await trial.open();
  await queue.enqueueMany([{ job: "a" }, { job: "b" }]);
  const item = await take(queue);
  await trial.server.command("FLUSHALL");
  expect(await queue.ack(item)).toBe(false);
  expect(await queue.dequeue()).toBeNull();
  await queue.enqueue("c");
  expect(await drain(queue)).toEqual(["c"]);
});

it("refuses items when it is full, and still serves, settles and hears heartbeats", async () => {
  const [queue, other] = [await trial.open(), await trial.open()];
  await queue.enqueueMany(["a", "b", "c", "d"].map((job) => ({ job })));
  const [a, b] = [await take(queue), await take(queue)];
  await trial.server.command("CONFIG", "SET", "maxmemory", "1");
  try {
    await expect(queue.enqueue("e")).rejects.toEqual(unavailable);
    const process = trial.openProcess();
    expect(await process.taken()).toEqual(["c", "d"]);
    process.signal("SIGKILL");
    expect(await take(other)).toMatchObject({ job: "c", attempt: 2 });
    expect(await queue.ack(a)).toBe(true);
    expect(await queue.release(b)).toBe(true);
    expect(jobsOf(await other.dequeueMany({ max: 5 }))).toEqual(["b", "d"]);
  } finally {
    await trial.server.command("CONFIG", "SET", "maxmemory", "0");
  }
  await queue.enqueue("e");
  expect(await drain(queue)).toEqual(["e"]);
});
