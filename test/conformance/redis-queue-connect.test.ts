// How a queue finds its Redis, and what it says when it does not.

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisQueue, type RedisQueueOptions } from "../../src/queue/redis-queue.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { until } from "../support/until.ts";
import { drain, take } from "./queue-stage.ts";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.drop());

const unavailable = { code: "REDIS_UNAVAILABLE" };
const invalid = { code: "OPTION_INVALID" };
const connect = (options: RedisQueueOptions) => RedisQueue.connect<string>(options);

describe("a server that is not there", () => {
  it("is REDIS_UNAVAILABLE when nobody listens", async () => {
    await expect(connect({ url: "redis://127.0.0.1:1" })).rejects.toMatchObject(unavailable);
    const url = ["redis://127.0.0.1:1", "redis://127.0.0.1:2"];
    await expect(connect({ url })).rejects.toMatchObject(unavailable);
    const sentinels = { url, sentinelMaster: "main", connectTimeoutMs: 500 };
    await expect(connect(sentinels)).rejects.toMatchObject(unavailable);
  });

  it("is REDIS_UNAVAILABLE when it listens and does not answer", async () => {
    const queue = await connect({ url: server.url });
    server.pause();
    try {
      await expect(queue.ping(100)).rejects.toMatchObject(unavailable);
      const options = { url: server.url, connectTimeoutMs: 200 };
      await expect(connect(options)).rejects.toMatchObject(unavailable);
    } finally {
      server.resume();
    }
    await queue.ping(10_000);
    await queue.close();
  });

  it("is REDIS_UNAVAILABLE when it does not know us", async () => {
    const url = server.url.replace("redis://", "redis://nobody:wrong@");
    await expect(connect({ url })).rejects.toMatchObject(unavailable);
  });
});

it("refuses an address that is none, without repeating it", async () => {
  const failure = await connect({ url: "http://user:secret@127.0.0.1" }).catch((error) => error);
  expect(failure).toMatchObject(invalid);
  expect(failure.message).not.toContain("secret");
  await expect(connect({ url: [] })).rejects.toMatchObject(invalid);
});

it("says which package is missing when the client is not installed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-test-bare-"));
  try {
    await cp("dist", join(folder, "dist"), { recursive: true });
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    const program = `
      import { RedisQueue } from "./dist/queue/redis-queue.js";
      const error = await RedisQueue.connect({ url: "${server.url}" }).catch((error) => error);
      console.log(error.code, error.message);`;
    const args = ["--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder });
    expect(stdout).toMatch(/^REDIS_CLIENT_MISSING .*@redis\/client/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

it.each(["", "await queue.enqueue('kept'); await queue.dequeue();"])(
  "lets its process end after shutdown, whatever it holds",
  async (before) => {
    const options = JSON.stringify({ url: server.url, name: randomUUID() });
    const program = `
      import { RedisQueue } from "./dist/queue/redis-queue.js";
      const queue = await RedisQueue.connect(${options});
      ${before}
      await queue.dequeue({ timeoutMs: 20 });
      await queue.shutdown();
      console.log("shut down");`;
    const args = ["--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toBe("shut down\n");
  },
);

it("refuses limits that are none, before it connects", async () => {
  const url = "redis://127.0.0.1:1";
  for (const bad of [{ heartbeatMs: 0 }, { maxDepth: -1 }, { answerTimeoutMs: Number.NaN }]) {
    await expect(connect({ url, ...bad })).rejects.toMatchObject(invalid);
  }
});

it("keeps queues of different names apart", async () => {
  const [one, other] = [
    await connect({ url: server.url, name: randomUUID() }),
    await connect({ url: server.url, name: randomUUID() }),
  ];
  await one.enqueue("mine");
  expect(await other.dequeue()).toBeNull();
  expect(await drain(one)).toEqual(["mine"]);
  await one.close();
  await other.close();
});

it("uses the keys it is given, and one hash tag for all its keys", async () => {
  await server.command("FLUSHALL");
  const own = { readyKey: "reports:{r}:now", scheduledKey: "reports:{r}:later" };
  const queue = await connect({ url: server.url, name: "reports", ...own });
  await queue.enqueueMany([
    { job: "a" },
    { job: "b" },
    { job: "c", delayMs: 60_000 },
    { job: "d", priority: "high" },
  ]);
  await queue.bury(await take(queue), "broken");
  await queue.release(await take(queue));
  await take(queue);
  const keys = ((await server.command("KEYS", "*")) as string[]).sort();
  expect(keys).toEqual(expect.arrayContaining(["reports:{r}:later", "reports:{r}:now:5"]));
  expect(keys.filter((key) => !key.includes("{r}"))).toEqual([]);
  await queue.close();
});

it("leaves no key behind but its counters when all is done", async () => {
  await server.command("FLUSHALL");
  const queue = await connect({ url: server.url, name: "q" });
  await queue.enqueueMany([{ job: "a" }, { job: "b", priority: "low" }, { job: "c", delayMs: 1 }]);
  for (let i = 0; i < 3; i++) await queue.ack(await take(queue));
  await queue.close();
  await server.command("DEL", "millrace:{q}:wake");
  const keys = ((await server.command("KEYS", "*")) as string[]).sort();
  expect(keys).toEqual(["millrace:{q}:heard", "millrace:{q}:sequence"]);
});

it("refuses, in a Cluster, keys that would lie in different slots", async () => {
  const url = ["redis://127.0.0.1:1"];
  const apart = { readyKey: "ready:{a}", scheduledKey: "scheduled:{b}" };
  await expect(connect({ url, ...apart })).rejects.toMatchObject(invalid);
  await expect(connect({ url, readyKey: "ready" })).rejects.toMatchObject(invalid);
  const together = { readyKey: "ready:{a}", scheduledKey: "scheduled:{a}" };
  await expect(connect({ url, ...together })).rejects.toMatchObject(unavailable);
});

it("follows a Sentinel to the new master", async () => {
  const replicaOf = { replicaof: `127.0.0.1 ${server.port}` };
  const replica = await startRedis({ settings: replicaOf });
  const sentinel = await startRedis({ sentinelOf: server.port });
  const options = { url: sentinel.url, sentinelMaster: "main", name: randomUUID() };
  try {
    const queue = await connect(options);
    await queue.enqueue("before");
    await until("the Sentinel knows the replica", async () => {
      const replicas = (await sentinel.command("SENTINEL", "REPLICAS", "main")) as string[][];
      const flags = replicas.map((fields) => fields[fields.indexOf("flags") + 1]);
      const link = replicas.map((fields) => fields[fields.indexOf("master-link-status") + 1]);
      return flags[0] === "slave" && link[0] === "ok";
    });
    await until("the failover begins", () =>
      sentinel.command("SENTINEL", "FAILOVER", "main").then(
        () => true,
        () => false,
      ),
    );
    await until("the replica is master", async () => {
      const role = await replica.command("ROLE").catch(() => []); // a change of role cuts us off
      return (role as string[])[0] === "master";
    });
    await until("the queue takes from it", async () => {
      const item = await queue.dequeue().catch(() => null);
      return item?.job === "before";
    });
    await queue.enqueue("after");
    expect(Number(await replica.command("EXISTS", `millrace:{${options.name}}:items`))).toBe(1);
    await queue.close();
  } finally {
    await sentinel.drop();
    await replica.drop();
    await server.restart();
  }
});
