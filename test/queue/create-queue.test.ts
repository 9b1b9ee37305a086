import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { loadQueueConfig } from "../../src/config.ts";
import { type CreateQueueOptions, createQueue } from "../../src/queue/create-queue.ts";
import type { Queue } from "../../src/queue/queue.ts";
import { RedisQueue } from "../../src/queue/redis-queue.ts";
import { Events } from "../../src/runtime/events.ts";
import { drain } from "../conformance/queue-stage.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { until } from "../support/until.ts";

let server: RedisServer;
let other: RedisServer;
const opened: Queue<string>[] = [];
let names = 0;

beforeAll(async () => {
  server = await startRedis({ durable: true });
  other = await startRedis({ durable: true });
});
afterEach(async () => {
  for (const queue of opened.splice(0)) await queue.shutdown();
});
afterAll(async () => {
  await server.drop();
  await other.drop();
});

async function open(options: CreateQueueOptions) {
  const events = new Events();
  const told: string[] = [];
  for (const name of ["queue.chosen", "queue.degraded"] as const)
    events.on(name, (event) => told.push(`${name} ${event.queue}: ${event.reason}`));
  for (const name of ["queue.fell_back", "queue.recovered"] as const)
    events.on(name, () => told.push(name));
  const name = options.name ?? `created-${++names}`;
  const queue = await createQueue<string>({
    ...{ redisHealthCheckTimeoutMs: 1_000, ...options },
    ...{ name, events },
  });
  opened.push(queue);
  return { queue, told, name };
}

const isActive = (queue: Queue<string>) => async () => (await queue.snapshot()).redis_active;

describe("createQueue", () => {
  it("chooses memory when Redis is not wanted", async () => {
    const { queue, told } = await open({ useRedis: false, redisUrl: server.url });
    expect(told).toEqual(["queue.chosen memory: USE_REDIS_QUEUE is false"]);
    await queue.enqueue("here");
    expect(await drain(queue)).toEqual(["here"]);
    expect(await queue.snapshot()).toMatchObject({ redis_active: false });
  });

  it("chooses Redis when there is a URL, and shares the queue by its name", async () => {
    const { queue, told, name } = await open({ redisUrl: server.url });
    expect(told).toEqual(["queue.chosen redis: Redis was asked for"]);
    expect(await queue.snapshot()).toMatchObject({ redis_active: true, active: "primary" });
    await queue.enqueue("shared");
    const another = await RedisQueue.connect<string>({ url: server.url, name });
    expect(await drain(another)).toEqual(["shared"]);
    await another.close();
  });

  it("begins in memory when the server is down, with one warning, and recovers", async () => {
    await server.kill();
    const { queue, told, name } = await open({ redisUrl: server.url });
    const warning =
      "queue.degraded fallback: Redis cannot be reached; memory serves until it is back";
    expect(told).toEqual([warning]);
    await queue.enqueueMany([{ job: "one" }, { job: "two" }, { job: "three" }]);
    const first = await queue.dequeue();
    expect(first?.job).toBe("one");
    expect(await queue.snapshot()).toMatchObject({ redis_active: false, active: "secondary" });
    await server.start();
    await until("Redis is in use", isActive(queue));
    if (first !== null) expect(await queue.ack(first)).toBe(true);
    const another = await RedisQueue.connect<string>({ url: server.url, name });
    await until("all is in Redis", async () => (await another.snapshot()).ready === 2);
    expect(await drain(another)).toEqual(["two", "three"]);
    await another.close();
    expect(told).toEqual([warning, "queue.recovered"]);
  });

  it("goes on in memory when Redis dies, and returns to it", async () => {
    const { queue, told } = await open({ redisUrl: server.url });
    await queue.enqueue("before");
    await server.kill();
    await queue.enqueue("meanwhile");
    expect(await queue.snapshot()).toMatchObject({ active: "secondary" });
    await server.start();
    await until("Redis is in use", isActive(queue));
    await until("all is in Redis", async () => {
      const { parts } = await queue.snapshot();
      return parts?.primary?.ready === 2;
    });
    expect(await drain(queue)).toEqual(["before", "meanwhile"]);
    expect(told.slice(1)).toEqual(["queue.fell_back", "queue.recovered"]);
  });

  it("goes on in memory when Redis falls silent", async () => {
    const { queue, told } = await open({ redisUrl: server.url });
    server.pause();
    try {
      await queue.enqueue("once", { id: "x" });
      expect(told.slice(1)).toEqual(["queue.fell_back"]);
    } finally {
      server.resume();
    }
    await until("Redis is in use", isActive(queue));
    expect(await drain(queue)).toEqual(["once"]);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0 });
  });

  it("makes shards of two URLs, and one that is down does not stop the other", async () => {
    const urls = { redisUrlHigh: server.url, redisUrlLow: other.url };
    const { queue, told } = await open(urls);
    expect(told).toEqual(["queue.chosen sharded: two Redis URLs were given"]);
    await queue.enqueueMany([{ job: "urgent", priority: "high" }, { job: "plain" }]);
    expect((await queue.snapshot()).parts).toMatchObject({
      high: { ready: 1, redis_active: true },
      low: { ready: 1, redis_active: true },
    });
    await server.kill();
    expect(await drain(queue)).toEqual(["plain"]);
    await queue.enqueue("still accepted", { priority: "high" });
    await server.start();
    await until("both are back", async () => {
      const { parts } = await queue.snapshot();
      return parts?.high?.redis_active === true && parts.high.parts?.primary?.ready === 2;
    });
    expect(await drain(queue)).toEqual(["urgent", "still accepted"]);
  });

  it("uses the keys it is told to use", async () => {
    const keys = { redisReadyKey: "{mine}:ready", redisScheduledKey: "{mine}:scheduled" };
    const { queue } = await open({ redisUrl: server.url, ...keys });
    await queue.enqueue("ready");
    await queue.enqueue("later", { delayMs: 60_000 });
    const found = (await server.command("KEYS", "{mine}*")) as string[];
    expect(found.some((key) => key.startsWith("{mine}:ready"))).toBe(true);
    expect(found).toContain("{mine}:scheduled");
  });
});

describe("the queue's configuration", () => {
  it("comes from the environment", () => {
    const env = {
      ...{ REDIS_URL: "redis://a", REDIS_URL_HIGH: "redis://b", USE_REDIS_QUEUE: "TRUE" },
      ...{ REDIS_HEALTH_CHECK_TIMEOUT: "0.5", LOG_LEVEL: "warn" },
    };
    expect(loadQueueConfig({}, env)).toMatchObject({
      redis: { use: true, high: "redis://b", low: "redis://a" },
      redisHealthCheckTimeoutMs: 500,
      logLevel: "warn",
    });
  });

  it("has defaults: memory, and two seconds", () => {
    expect(loadQueueConfig({}, {})).toMatchObject({
      redis: { use: false, reason: "there is no REDIS_URL" },
      redisHealthCheckTimeoutMs: 2_000,
      priorities: { high: 0, normal: 5, low: 10 },
    });
  });

  it("does without Redis when USE_REDIS_QUEUE is false", () => {
    const env = { REDIS_URL: "redis://a", USE_REDIS_QUEUE: "false" };
    expect(loadQueueConfig({}, env).redis).toMatchObject({ use: false });
    expect(loadQueueConfig({ useRedis: true }, env).redis).toMatchObject({ use: true });
  });

  it.each([
    { USE_REDIS_QUEUE: "perhaps" },
    { USE_REDIS_QUEUE: "true" },
    { REDIS_URL_HIGH: "redis://b" },
    { REDIS_URL: "redis://a", REDIS_HEALTH_CHECK_TIMEOUT: "soon" },
  ])("refuses %o", (env) => {
    expect(() => loadQueueConfig({}, env)).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    );
  });
});
