// The queue's contract on what is composed over a real Redis.

import { afterAll, beforeAll, describe } from "vitest";
import { FallbackQueue } from "../../src/queue/fallback-queue.ts";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import type { Queue } from "../../src/queue/queue.ts";
import type { RedisQueue } from "../../src/queue/redis-queue.ts";
import { ShardedQueue } from "../../src/queue/sharded-queue.ts";
import { redisQueueStage } from "../support/redis-queue.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { until } from "../support/until.ts";
import { queueConformance, sharedQueueConformance } from "./queue.conformance.ts";
import { queueProperty } from "./queue.property.ts";
import type { QueueStage, SharedQueueStage, StageOptions } from "./queue-stage.ts";

describe("over Redis", () => {
  let first: RedisServer | undefined;
  let second: RedisServer | undefined;
  beforeAll(async () => {
    first = await startRedis({ durable: true });
    second = await startRedis({ durable: true });
  });
  afterAll(async () => {
    await first?.drop();
    await second?.drop();
  });
  const on = (server: RedisServer | undefined, options?: StageOptions) => {
    if (server === undefined) throw new Error("the server is not up yet");
    return redisQueueStage({ servers: [server], url: server.url }, options);
  };

  const fallback = async (options: StageOptions = {}): Promise<SharedQueueStage> => {
    const inner = await on(first, options);
    const handles = new Map<Queue<string>, Queue<string>>();
    const { capacity, events: _, ...rest } = options;
    const limit = capacity === undefined ? {} : { maxInMemory: capacity };
    return {
      ...inner,
      queue: async () => {
        const primary = (await inner.queue()) as RedisQueue<string>;
        const secondary = new MemoryQueue<string>({ ...rest, ...limit });
        const queue = new FallbackQueue(primary, secondary, { healthCheckIntervalMs: 50 });
        handles.set(queue, primary);
        return queue;
      },
      crash: async (handle) => {
        const primary = handles.get(handle);
        if (primary === undefined) throw new Error("not a handle of this stage");
        handles.delete(handle);
        await inner.crash(primary);
        await handle.shutdown();
      },
      restart: async () => {
        await inner.restart();
        for (const queue of handles.keys()) {
          const isBack = async () => (await queue.snapshot()).active === "primary";
          await until("the primary serves again", isBack);
        }
      },
      close: async () => {
        for (const queue of handles.keys()) await queue.shutdown();
        await inner.close();
      },
    };
  };

  const sharded = async (options: StageOptions = {}): Promise<QueueStage> => {
    const [high, low] = [await on(first, options), await on(second, options)];
    return {
      slackMs: low.slackMs,
      now: low.now,
      advance: low.advance,
      queue: async () =>
        new ShardedQueue<string>([
          { name: "high", labels: ["high"], queue: await high.queue() },
          { name: "low", queue: await low.queue() },
        ]),
      close: async () => {
        await high.close();
        await low.close();
      },
    };
  };

  sharedQueueConformance("a fallback queue", fallback);
  queueConformance("a sharded queue", sharded);
  queueProperty("a fallback queue over Redis", fallback, { numRuns: 8, maxSteps: 40 });
  const apart = { numRuns: 8, maxSteps: 40, idsPerPriority: true };
  queueProperty("a sharded queue over Redis", sharded, apart);
});
