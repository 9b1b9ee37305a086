// What a queue on Redis says to bad input, strange data and a server that does not want it.

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FallbackQueue } from "../../src/queue/fallback-queue.ts";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import { RedisConnection } from "../../src/queue/redis/connection.ts";
import { RedisQueue } from "../../src/queue/redis-queue.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { until } from "../support/until.ts";
import { jobsOf, patienceMs, take } from "./queue-stage.ts";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.drop());

const connect = (name: string = randomUUID()) =>
  RedisQueue.connect<unknown>({ url: server.url, name });

describe("a server with a password", () => {
  it("is told as such, at once, to whoever brings none or a wrong one", async () => {
    const guarded = await startRedis();
    try {
      await guarded.command("ACL", "SETUSER", "default", "resetpass", ">sesame");
      const url = guarded.url.replace("redis://", "redis://:sesame@");
      const queue = await RedisQueue.connect({ url });
      await queue.close();
      for (const wrong of [guarded.url, guarded.url.replace("redis://", "redis://:other@")]) {
        const error = await RedisQueue.connect({ url: wrong }).catch((failure) => failure);
        expect(error).toMatchObject({ code: "REDIS_UNAVAILABLE" });
        expect(error.message).toMatch(/password/);
        expect(error.message).not.toMatch(/sesame|other/);
      }
    } finally {
      await guarded.drop();
    }
  });
});

it("refuses addresses that are none", async () => {
  const wrong = ["/abc", "", "redis://", "redis://host:99999", "redis://a,http://b", null, 5, [5]];
  for (const url of wrong) {
    const call = RedisQueue.connect({ url: url as string });
    await expect(call, String(url)).rejects.toMatchObject({ code: "OPTION_INVALID" });
  }
});

it("refuses jobs that JSON cannot hold, and keeps undefined", async () => {
  const queue = await connect();
  const circle: unknown[] = [];
  circle.push(circle);
  for (const wrong of [() => 1, Symbol("x"), 5n, circle])
    await expect(queue.enqueue(wrong)).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
  await queue.enqueue(undefined);
  expect(await queue.dequeue()).toMatchObject({ job: undefined });
  await queue.close();
});

it("puts a stored item that nobody can read aside, and serves its neighbours", async () => {
  const name = randomUUID();
  const queue = await connect(name);
  await queue.enqueueMany([{ job: "a" }, { job: "b", id: "broken" }, { job: "c" }]);
  const items = `millrace:{${name}}:items`;
  const record = String(await server.command("HGET", items, "broken"));
  await server.command("HSET", items, "broken", record.replace('"b"', '"b'));
  expect(jobsOf((await queue.dequeueMany({ max: 3 })) as never)).toEqual(["a", "c"]);
  expect(await queue.snapshot()).toMatchObject({ taken: 2, dead: 1 });
  expect(await queue.dead()).toMatchObject([{ id: "broken", error: expect.any(String) }]);
  await queue.close();
});

it.each(["garbage", "", "x,y,z;;;", "1,2"])(
  "puts a record %j that is none aside, and serves its neighbours",
  async (garbage) => {
    const name = randomUUID();
    const queue = await connect(name);
    await queue.enqueueMany([{ job: "a" }, { job: "b", id: "broken" }, { job: "c" }]);
    await server.command("HSET", `millrace:{${name}}:items`, "broken", garbage);
    expect(jobsOf((await queue.dequeueMany({ max: 3 })) as never)).toEqual(["a", "c"]);
    expect(await queue.dead()).toMatchObject([{ id: "broken" }]);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 2, dead: 1 });
    await queue.close();
  },
);

describe("keys that are somebody else's", () => {
  const refused = { code: "REDIS_REFUSED", message: expect.stringContaining("WRONGTYPE") };
  const nothing = { depth: 0, taken: 0, dead: 0 };

  it.each(["items", "ready:5", "weights", "returned", "scheduled", "takers", "wake", "sequence"])(
    "are told when %s is one, and nothing is half done",
    async (key) => {
      const name = randomUUID();
      const queue = await connect(name);
      const foreign = `millrace:{${name}}:${key}`;
      await (key === "sequence"
        ? server.command("LPUSH", foreign, "not a number")
        : server.command("SET", foreign, "not ours"));
      await expect(queue.enqueue("a", { id: "x" })).rejects.toMatchObject(refused);
      await server.command("DEL", foreign);
      expect(await queue.snapshot()).toMatchObject(nothing);
      await queue.enqueue("a", { id: "x" });
      await server.command("DEL", foreign);
      expect(await queue.enqueue("b", { id: "y" })).toMatchObject({ job: "b" });
      await queue.close();
    },
  );

  it.each(["items", "takers", "wake", "returned"])(
    "are told to a taker when %s is one, and what was ready stays ready",
    async (key) => {
      const name = randomUUID();
      const queue = await connect(name);
      await queue.enqueue("a");
      const [mine, kept] = [`millrace:{${name}}:${key}`, `millrace:{${name}}:kept`];
      await server.command("RENAME", mine, kept).catch(() => {});
      await server.command("SET", mine, "not ours");
      await expect(queue.dequeue()).rejects.toMatchObject(refused);
      await server.command("DEL", mine);
      await server.command("RENAME", kept, mine).catch(() => {});
      expect(await queue.dequeue({ timeoutMs: patienceMs })).toMatchObject({ job: "a" });
      await queue.close();
    },
  );
});

it("answers with some of a batch that would be too large, in order, and with the rest after it", async () => {
  const queue = await connect();
  const jobs = Array.from({ length: 6 }, (_, i) => `${i}${"x".repeat(2 ** 20)}`);
  await queue.enqueueMany(jobs.map((job) => ({ job })));
  const first = await queue.dequeueMany({ max: 6 });
  expect(first.length).toBeLessThan(6);
  const rest: unknown[] = [];
  while (first.length + rest.length < 6) rest.push(...(await queue.dequeueMany({ max: 6 })));
  expect(jobsOf([...first, ...rest] as never)).toEqual(jobs);
  await queue.close();
});

it("gives back at once what it holds, also when it is closed twice", async () => {
  const name = randomUUID();
  const [queue, other] = [await connect(name), await connect(name)];
  await queue.enqueueMany(Array.from({ length: 20 }, (_, job) => ({ job })));
  await queue.dequeueMany({ max: 10 });
  await Promise.all([queue.close(), queue.close()]);
  expect(await other.snapshot()).toMatchObject({ ready: 20, taken: 0 });
  await other.close();
});

describe("a process that was busy for longer than it waits for an answer", () => {
  /** Until after the command has been written, or before: both have been seen. */
  const busyFor = (ms: number) => {
    for (const end = performance.now() + ms; performance.now() < end; );
  };

  it.each([0, 1, 2])("does not take that for an outage (after %i turns)", async (turns) => {
    const primary = await RedisQueue.connect<string>({
      ...{ url: server.url, name: randomUUID(), answerTimeoutMs: 200 },
    });
    const queue = new FallbackQueue<string>(primary, new MemoryQueue(), {
      healthCheckTimeoutMs: 200,
    });
    await queue.enqueue("warm");
    const enqueued = queue.enqueue("a");
    for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
    busyFor(1_000);
    await enqueued;
    expect(await queue.snapshot()).toMatchObject({ active: "primary", ready: 2 });
    await queue.shutdown();
    await primary.close();
  });
});

it("lets no take from before a FLUSHALL settle a new item of the same id", async () => {
  const queue = await connect();
  await queue.enqueue("old", { id: "x" });
  const old = await take(queue as RedisQueue<string>);
  await server.command("FLUSHALL");
  await queue.enqueue("new", { id: "x" });
  const current = await take(queue as RedisQueue<string>);
  expect(current).toMatchObject({ id: old.id, attempt: old.attempt, job: "new" });
  expect(await queue.ack(old)).toBe(false);
  expect(await queue.ack(current)).toBe(true);
  await queue.close();
});

it("does not make a fallback queue switch by bad input", async () => {
  const primary = await connect();
  const queue = new FallbackQueue<unknown>(primary, new MemoryQueue());
  const wrong = [
    () => queue.enqueue("a", { id: 5 as never }),
    () => queue.enqueue(() => 1),
    () => queue.ack({} as never),
    () => queue.requeue(5 as never),
    () => queue.dead({ limit: Number.NaN }),
  ];
  for (const call of wrong) await expect(call()).rejects.toThrow(/must|cannot/);
  expect(await queue.snapshot()).toMatchObject({ active: "primary", redis_active: true });
  await queue.enqueue("a");
  const item = await queue.dequeue();
  expect(await queue.bury(item as never, new Error("broken"))).toBe(true);
  expect((await queue.snapshot()).parts).toMatchObject({
    primary: { dead: 1 },
    secondary: { dead: 0, depth: 0 },
  });
  await queue.shutdown();
  await primary.close();
});

it("refuses, while memory serves, what Redis could not store later", async () => {
  const primary = await connect();
  const queue = new FallbackQueue<unknown>(primary, new MemoryQueue(), { primaryIsDown: true });
  await expect(queue.enqueue(() => 1)).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
  expect(await queue.snapshot()).toMatchObject({ depth: 0 });
  await queue.shutdown();
  await primary.close();
});

describe("a connection that is closed while it comes back", () => {
  it("leaves no socket behind, at whatever moment", async () => {
    const sockets = new Set<Socket>();
    let onConnection = () => {};
    const gate = createServer((socket) => {
      sockets.add(socket);
      const upstream = connectTcp(server.port, "127.0.0.1");
      socket.pipe(upstream).pipe(socket);
      for (const end of [socket, upstream]) {
        end.on("error", () => {});
        end.on("close", () => {
          sockets.delete(socket);
          socket.destroy();
          upstream.destroy();
        });
      }
      onConnection();
    }).listen(0, "127.0.0.1");
    await once(gate, "listening");
    const { port } = gate.address() as { port: number };
    const target = { url: `redis://127.0.0.1:${port}`, name: "test" };
    const patience = { connectTimeoutMs: 5_000, answerTimeoutMs: 5_000 };
    for (let turns = 0; turns < 8; turns++) {
      const connection = await RedisConnection.open({ ...target, ...patience });
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => {
        onConnection = resolve;
      });
      for (let i = 0; i < turns; i++) await Promise.resolve();
      if (turns > 4) await new Promise((resolve) => setImmediate(resolve));
      connection.close();
      await until("no socket is left", () => sockets.size === 0);
    }
    gate.close();
  });

  it("lets its process end", async () => {
    const program = `
      import { RedisQueue } from "./dist/queue/redis-queue.js";
      const queue = await RedisQueue.connect({ url: "${server.url}", name: "ends" });
      await queue.enqueue("a");
      process.stdout.write("ready\\n");
      await queue.dequeue({ timeoutMs: 100 }).catch(() => {});
      await queue.close();`;
    const args = ["--input-type=module", "--eval", program];
    const running = promisify(execFile)(process.execPath, args);
    await once(running.child.stdout ?? running.child, "data");
    await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    expect((await running).stdout).toBe("ready\n");
  });
});
