// The queue's contract on every implementation that needs no server. Redis has a file of its own.

import { FallbackQueue } from "../../src/queue/fallback-queue.ts";
import { MemoryQueue, type MemoryQueueOptions } from "../../src/queue/memory-queue.ts";
import type { Queue } from "../../src/queue/queue.ts";
import { ShardedQueue } from "../../src/queue/sharded-queue.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { linkTo } from "../queue/link.ts";
import { queueConformance } from "./queue.conformance.ts";
import { queueProperty } from "./queue.property.ts";
import { ManualClock } from "./queue-clock.ts";
import type { MakeStage } from "./queue-stage.ts";

type MakeQueue = (options: MemoryQueueOptions & { clock: Clock }) => Queue<string>;

/** One process, and a clock that only the test moves. */
function stageOf(makeQueue: MakeQueue): MakeStage {
  return async ({ capacity, ...options } = {}) => {
    const clock = new ManualClock();
    const limit = capacity === undefined ? {} : { maxInMemory: capacity };
    const queue = makeQueue({ ...options, ...limit, clock });
    return {
      slackMs: 0,
      queue: async () => queue,
      now: () => clock.now().getTime(),
      advance: (ms) => clock.advance(ms),
      close: async () => void (await queue.shutdown()),
    };
  };
}

const inMemory = stageOf((options) => new MemoryQueue(options));

const overPrimary = stageOf((options) => {
  const primary = linkTo<string>(new MemoryQueue(options));
  return new FallbackQueue<string>(primary.far, new MemoryQueue(options), options);
});

const overSecondary = stageOf((options) => {
  const primary = linkTo<string>(new MemoryQueue(options));
  primary.state = "deaf";
  const down = { ...options, primaryIsDown: true };
  return new FallbackQueue<string>(primary.far, new MemoryQueue(options), down);
});

const inShards = stageOf(
  (options) =>
    new ShardedQueue<string>(
      [
        { name: "high", labels: ["high"], queue: new MemoryQueue(options) },
        { name: "low", queue: new MemoryQueue(options) },
      ],
      options,
    ),
);

const inShardsWithFallback = stageOf((options) => {
  const shard = (name: string) =>
    new FallbackQueue<string>(
      linkTo<string>(new MemoryQueue(options)).far,
      new MemoryQueue(options),
      { ...options, name },
    );
  return new ShardedQueue<string>(
    [
      { name: "high", labels: ["high"], queue: shard("high") },
      { name: "low", queue: shard("low") },
    ],
    options,
  );
});

queueConformance("the queue in memory", inMemory);
queueConformance("a fallback queue whose primary serves", overPrimary);
queueConformance("a fallback queue whose secondary serves", overSecondary);
queueConformance("a sharded queue", inShards);
queueConformance("a sharded queue of fallback queues", inShardsWithFallback);

queueProperty("the queue in memory", inMemory, { numRuns: 300 });
queueProperty("a fallback queue whose primary serves", overPrimary);
queueProperty("a fallback queue whose secondary serves", overSecondary);
queueProperty("a sharded queue", inShards, { idsPerPriority: true });
queueProperty("a sharded queue of fallback queues", inShardsWithFallback, { idsPerPriority: true });
