// The ways to elect a leader, each on servers of its own.

import { randomUUID } from "node:crypto";
import { createPostgresElection } from "../../src/manager/postgres-election.ts";
import { RedisElection } from "../../src/manager/redis-election.ts";
import { type ElectionStage, ttlMs } from "../conformance/election.ts";
import { startRedis } from "./redis-server.ts";
import { openTestStore, type TestStore } from "./store.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const ageRow = ({ sql }: TestStore, ms: number) =>
  sql("update millrace.leader set expires_at = expires_at - $1::int * interval '1 ms'", [ms]);

export async function electInPostgres(): Promise<ElectionStage> {
  const opened = await openTestStore(undefined, { leaderTtlMs: ttlMs });
  const { store } = opened;
  return {
    opened,
    candidate: async () => ({
      election: createPostgresElection({ store, holder: randomUUID(), ttlMs }),
      cutOff: () => {},
    }),
    age: async (ms) => void (await ageRow(opened, ms)),
    forget: async () => {},
    close: () => opened.close(),
  };
}

export async function electThroughRedis(): Promise<ElectionStage> {
  const opened = await openTestStore(undefined, { leaderTtlMs: ttlMs });
  const redis = await startRedis();
  const proxies: TcpProxy[] = [];
  const { store } = opened;
  const { namespace } = await store.identity();
  const key = `millrace:{${namespace}}:candidate`;
  return {
    opened,
    candidate: async () => {
      const proxy = await TcpProxy.start(redis.url);
      proxies.push(proxy);
      return {
        election: new RedisElection({
          ...{ store, holder: randomUUID(), ttlMs, url: proxy.url, connectTimeoutMs: 2_000 },
        }),
        cutOff: (isCutOff) => (isCutOff ? proxy.refuse() : proxy.open()),
      };
    },
    age: async (ms) => {
      await ageRow(opened, ms);
      const leftMs = Number(await redis.command("PTTL", key));
      if (leftMs >= 0) await redis.command("PEXPIRE", key, String(leftMs - ms));
    },
    forget: async () => void (await redis.command("FLUSHALL")),
    close: async () => {
      for (const proxy of proxies) await proxy.close();
      await redis.drop();
      await opened.close();
    },
  };
}
