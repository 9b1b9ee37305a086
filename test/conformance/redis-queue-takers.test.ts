// What becomes of items when takers die, stall, wait or leave.

import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { heartbeatMs, RedisTrial } from "../support/redis-trial.ts";
import { until } from "../support/until.ts";
import { anHour, patienceMs, take } from "./queue-stage.ts";

const trial = RedisTrial.use();

it("gives the items of a killed process to others, and counts the attempt", async () => {
  const queue = await trial.open();
  await queue.enqueueMany([{ job: "a" }, { job: "b" }]);
  const process = trial.openProcess();
  expect(await process.taken()).toEqual(["a", "b"]);
  process.signal("SIGKILL");
  expect(await take(queue)).toMatchObject({ job: "a", attempt: 2 });
  expect(await take(queue)).toMatchObject({ job: "b", attempt: 2 });
});

it("refuses the acks of a process that stood still for too long", async () => {
  const queue = await trial.open();
  await queue.enqueue("a");
  const process = trial.openProcess();
  expect(await process.taken()).toEqual(["a"]);
  process.signal("SIGSTOP");
  const again = await take(queue);
  process.signal("SIGCONT");
  expect(await process.ack()).toEqual([false]);
  expect(await queue.ack(again)).toBe(true);
});

it("leaves with a living process what it holds, however long", async () => {
  const [holder, other] = [await trial.open(), await trial.open()];
  await holder.enqueueMany([{ job: "held" }, { job: "mark", delayMs: heartbeatMs * 8 }]);
  const held = await take(holder);
  expect((await take(other)).job).toBe("mark");
  expect(await other.dequeue()).toBeNull();
  expect(await holder.ack(held)).toBe(true);
});

it("gives back at once what a closed queue still held, unspent", async () => {
  const [leaver, other] = [await trial.open({ heartbeatMs: 60_000 }), await trial.open()];
  await other.enqueue("a");
  await take(leaver);
  await leaver.close();
  expect(await take(other)).toMatchObject({ job: "a", attempt: 1 });
});

it("ends waiting takes when it is closed, and answers later ones with nothing", async () => {
  const queue = await trial.open();
  await queue.enqueue("held");
  const held = await take(queue);
  const waiting = queue.dequeue({ timeoutMs: anHour });
  await queue.close();
  expect(await waiting).toBeNull();
  expect(await queue.dequeue({ timeoutMs: anHour })).toBeNull();
  expect(await queue.ack(held)).toBe(false);
});

it("leaves one signal for whoever waits next, and passes on what it does not need", async () => {
  const [queue, producer] = [await trial.open(), await trial.open()];
  const signals = async () =>
    Number(await trial.server.command("LLEN", `millrace:{${trial.name}}:wake`));
  const abort = new AbortController();
  const waiting = queue.dequeue({ timeoutMs: anHour, signal: abort.signal });
  await trial.blocking(1);
  abort.abort();
  expect(await waiting).toBeNull();
  await producer.enqueue("a");
  await until("the signal is back", async () => (await signals()) === 1);
  await producer.enqueue("b");
  expect(await signals()).toBe(1);
});

it("sends next to nothing while it waits", async () => {
  const [consumer, producer] = [await trial.open({ heartbeatMs: 60_000 }), await trial.open()];
  const taken = consumer.dequeue({ timeoutMs: patienceMs });
  await trial.blocking(1);
  await trial.forgetCalls();
  await delay(2_000);
  expect(await trial.scriptCalls()).toBe(0);
  await producer.enqueue("a");
  expect(await taken).toMatchObject({ job: "a" });
});

it("looks now and then where it may not block", async () => {
  await trial.server.command(
    "ACL",
    "SETUSER",
    "meek",
    "on",
    "nopass",
    "~*",
    "&*",
    "+@all",
    "-blpop",
  );
  const url = trial.server.url.replace("redis://", "redis://meek:any@");
  const [consumer, producer] = [await trial.open({ url, heartbeatMs: 60_000 }), await trial.open()];
  await consumer.dequeue();
  await trial.forgetCalls();
  const taken = consumer.dequeue({ timeoutMs: patienceMs });
  await until("it has looked a few times", async () => (await trial.scriptCalls()) > 3);
  expect(await trial.scriptCalls()).toBeLessThan(8);
  await producer.enqueue("a");
  expect(await taken).toMatchObject({ job: "a" });
});

it("sends what is asked for in one tick together", async () => {
  const queue = await trial.open();
  await queue.ack(await queue.enqueue("warm up").then(() => take(queue)));
  await trial.forgetCalls();
  const jobs = Array.from({ length: 200 }, (_, i) => `job ${i}`);
  await Promise.all(jobs.map((job) => queue.enqueue(job)));
  expect(await trial.scriptCalls()).toBe(1);
  const items = await Promise.all(jobs.map(() => queue.dequeue()));
  expect(items.map((item) => item?.job)).toEqual(jobs);
  const acks = await Promise.all(items.map((item) => item !== null && queue.ack(item)));
  expect(acks.every(Boolean)).toBe(true);
  // Three of its own, and whatever heartbeats there were.
  expect(await trial.scriptCalls()).toBeLessThan(10);
});
