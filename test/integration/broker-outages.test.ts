// Redis comes, goes, stalls and fills up: what is told of it, and how everything ends.

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { Millrace } from "../../src/index.ts";
import { BrokerTrial, dispatchOf, numbers, recorded } from "../support/broker-trial.ts";
import { startRedis } from "../support/redis-server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

const broker = BrokerTrial.use();
const root = join(import.meta.dirname, "..", "..");

/** Jobs go through until the list says this. */
async function runUntilTold(producer: Millrace, told: readonly string[], words: string[]) {
  const { job } = recorded();
  await until(`told ${words.join(", ")}`, async () => {
    await producer.result((await producer.enqueue(job, 1)).id);
    return told.length >= words.length;
  });
  expect(told).toEqual(words);
}

describe("what is told", () => {
  it("a Redis that is down at the start is used once it is there", async () => {
    const redis = await startRedis();
    broker.endsWith(() => redis.drop());
    await redis.kill();
    const millrace = await broker.connectOnly({ redisUrl: redis.url });
    const told = dispatchOf(millrace);
    await millrace.work([recorded().job]);
    await runUntilTold(millrace, told, ["direct"]);
    await redis.start();
    await runUntilTold(millrace, told, ["direct", "brokered"]);
  });

  it("each change is told of once, however often Redis is asked meanwhile", async () => {
    const [producer, consumer] = [await broker.connect(), await broker.connect()];
    const told = [producer, consumer].map((one) => dispatchOf(one));
    const { job } = recorded();
    await consumer.work([job]);
    const goThrough = (count: number) =>
      until("all are told", async () => {
        await producer.result((await producer.enqueue(job, 1)).id);
        return told.every((words) => words.length >= count);
      });
    await broker.redis.kill();
    await goThrough(1);
    await broker.redis.start();
    await goThrough(2);
    await broker.redis.kill();
    await goThrough(3);
    await broker.redis.start();
    await goThrough(4);
    for (const words of told) expect(words).toEqual(["direct", "brokered", "direct", "brokered"]);
  });

  it("a full Redis is told of once, while it gives what it holds", async () => {
    const window = await broker.openWindow();
    const millrace = await broker.connect();
    const { job, runs } = recorded();
    await millrace.enqueueMany(job, numbers(50));
    await window.holds(50);
    const told = dispatchOf(millrace);
    await broker.redis.command("CONFIG", "SET", "maxmemory", "1");
    await millrace.enqueue(job, "finds no room");
    await until("it is told of", () => told.length > 0);
    await millrace.work([job]);
    await window.holds(0);
    const since = performance.now();
    // Longer than the pause after which a put is tried again.
    await until("puts were tried again", async () => {
      await millrace.result((await millrace.enqueue(job, "more")).id);
      return performance.now() - since > 1_500;
    });
    expect(told).toEqual(["direct"]);
    expect(runs).toEqual(expect.arrayContaining([...numbers(50), "finds no room"]));
    await broker.redis.command("CONFIG", "SET", "maxmemory", "0");
    await runUntilTold(millrace, told, ["direct", "brokered"]);
  });

  it("without the client package Millrace warns once and dispatches directly", async () => {
    const folder = await mkdtemp(join(tmpdir(), "millrace-no-redis-"));
    broker.endsWith(() => rm(folder, { recursive: true, force: true }));
    await cp(join(root, "dist"), join(folder, "dist"), { recursive: true });
    await cp(join(root, "package.json"), join(folder, "package.json"));
    await mkdir(join(folder, "node_modules"));
    for (const name of ["pino", "pg"])
      await symlink(join(root, "node_modules", name), join(folder, "node_modules", name));
    const connect = { databaseUrl: broker.trial.url, redisUrl: broker.redis.url };
    await writeFile(
      join(folder, "program.mjs"),
      `import { defineJob, Millrace } from "./dist/index.js";
      const millrace = await Millrace.connect(${JSON.stringify(connect)});
      const job = defineJob({ type: "direct", run: () => "served" });
      await millrace.work([job]);
      const { id } = await millrace.enqueue(job, 1);
      console.log(JSON.stringify({ result: await millrace.result(id) }));
      await millrace.stop();`,
    );
    const options = { cwd: folder, env: { PATH: process.env.PATH } };
    const { stdout } = await promisify(execFile)(process.execPath, ["program.mjs"], options);
    const lines = stdout.trim().split("\n");
    const logged = lines.map((line) => JSON.parse(line));
    expect(logged.filter(({ level }) => level >= 40)).toMatchObject([
      { msg: "dispatch.direct", err: { code: "REDIS_CLIENT_MISSING" } },
    ]);
    expect(logged).toContainEqual({ result: "served" });
  });
});

describe("with a Redis for high and one for low", () => {
  it.each(["high", "low"] as const)(
    "work goes on while %s is down, from the start",
    async (down) => {
      const dead = await startRedis();
      broker.endsWith(() => dead.drop());
      await dead.kill();
      const up = down === "high" ? "low" : "high";
      const urls =
        down === "high"
          ? { redisUrlHigh: dead.url, redisUrlLow: broker.redis.url }
          : { redisUrlHigh: broker.redis.url, redisUrlLow: dead.url };
      const producer = await broker.connectOnly(urls);
      const told = {
        up: dispatchOf(producer, `redis ${up}`),
        down: dispatchOf(producer, `redis ${down}`),
      };
      const consumer = await broker.connectOnly(urls);
      await until("one of them serves", () => told.up.length > 0 && told.down.length > 0);
      const window = await broker.openWindow();
      const { job, runs } = recorded();
      await producer.enqueueMany(job, numbers(20), (_, i) => ({
        priority: i % 2 === 0 ? "high" : "low",
      }));
      await window.holds(10);
      await consumer.work([job]);
      await broker.trial.drained();
      expect(runs).toHaveLength(20);
      await dead.start();
      await until("the other one serves", () => told.down.length > 1);
      expect(told).toEqual({ up: ["brokered"], down: ["direct", "brokered"] });
      await producer.enqueueMany(job, numbers(20), { priority: down });
      await broker.trial.drained();
      expect(runs).toHaveLength(40);
    },
  );
});

describe("the end", () => {
  it("a producer that stops at once has hinted what it enqueued", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    await producer.enqueue(recorded().job, 1);
    await producer.stop();
    expect(await window.size()).toBe(1);
  });

  it.each(["running", "dead", "silent", "restarted"] as const)(
    "a process stops and exits by itself when Redis is %s",
    async (state) => {
      const worker = await broker.start();
      await broker.trial.end(await worker.enqueue({ kind: "quick" }));
      if (state === "dead" || state === "restarted") await broker.redis.kill();
      if (state === "silent") broker.pauseRedis();
      if (state !== "running") await worker.writes("dispatch.direct");
      if (state === "restarted") await broker.redis.start();
      worker.askToStop();
      await worker.writes("stopped");
      await worker.ended();
      expect(worker.exitCode).toBe(0);
    },
  );

  it("stops while it waits for a Redis that does not say hello", async () => {
    const proxy = await TcpProxy.start(broker.redis.url);
    broker.endsWith(() => proxy.close());
    proxy.silence();
    const redis = { redisUrl: proxy.url, redisHealthCheckTimeoutMs: 600_000 };
    const millrace = await broker.connectOnly(redis);
    await millrace.enqueue(recorded().job, 1);
    await millrace.stop();
  });
});
