// The window's contract on one Redis server and on a cluster of three masters.

import { afterAll, beforeAll } from "vitest";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { windowConformance } from "./window.ts";

let server: RedisServer | undefined;
let cluster: RedisCluster | undefined;
beforeAll(async () => {
  server = await startRedis({ durable: true });
  cluster = await startRedisCluster({ durable: true });
});
afterAll(async () => {
  await server?.drop();
  await cluster?.drop();
});

windowConformance("a window on a Redis server", () => {
  if (server === undefined) throw new Error("the server is not up yet");
  return { url: server.url, servers: [server] };
});

windowConformance("a window on a Redis Cluster", () => {
  if (cluster === undefined) throw new Error("the cluster is not up yet");
  return { url: cluster.urls, servers: cluster.servers };
});
