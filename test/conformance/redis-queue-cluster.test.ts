// The queue's contract on a Redis Cluster of three masters.

import { afterAll, beforeAll } from "vitest";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { redisQueueStage } from "../support/redis-queue.ts";
import { sharedQueueConformance } from "./queue.conformance.ts";
import { queueProperty } from "./queue.property.ts";
import type { StageOptions } from "./queue-stage.ts";

let cluster: RedisCluster | undefined;
beforeAll(async () => {
  cluster = await startRedisCluster({ durable: true });
});
afterAll(() => cluster?.drop());

const open = (options?: StageOptions) => {
  if (cluster === undefined) throw new Error("the cluster is not up yet");
  return redisQueueStage({ servers: cluster.servers, url: cluster.urls }, options);
};
sharedQueueConformance("RedisQueue on a Redis Cluster", open);
queueProperty("RedisQueue on a Redis Cluster", open, { numRuns: 10, maxSteps: 60 });
