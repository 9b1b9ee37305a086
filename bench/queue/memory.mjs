// What a number of waiting items costs in Redis: used_memory with them less used_memory without.
import { Redis } from "ioredis";
import { withStand } from "../measure.mjs";

async function usedMemory(redis) {
  const info = await redis.info("memory");
  return Number(/used_memory:(\d+)/.exec(info)[1]);
}

export const memoryOf = (lab, system, config, count) =>
  withStand(lab, system, config, { workers: 0 }, async (stand) => {
    const redis = new Redis(stand.server.url);
    try {
      const before = await usedMemory(redis);
      await stand.produce({ count, bytes: 100 });
      const bytes = (await usedMemory(redis)) - before;
      await redis.flushall();
      return { items: count, bytes_per_item: bytes / count };
    } finally {
      redis.disconnect();
    }
  });
