// From configuration to a broker, or to none.

import type { Config } from "../config.ts";
import { Broker } from "../queue/broker.ts";
import type { ShardOptions, WeightRange } from "../queue/broker-shard.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Store } from "../store/store.ts";

interface Parts {
  readonly config: Config;
  readonly store: Store;
  readonly clock: Clock;
  readonly events: Events;
}

const answerTimeoutMs = 100;
const everyWeight: WeightRange = { from: -32_768, to: 32_767 };
const ignore = () => {};

export function openBroker({ config, store, clock, events }: Parts): Broker | null {
  const { redis } = config;
  if (!redis.use) return null;
  const shard = (name: string, url: string, weights: WeightRange): ShardOptions => ({
    name,
    weights,
    open: async () => {
      const { RedisWindow } = await import("../queue/redis/window.ts");
      const { epoch, namespace } = await store.identity();
      return RedisWindow.open({
        ...{ url, epoch, namespace, answerTimeoutMs, events },
        connectTimeoutMs: config.redisHealthCheckTimeoutMs,
        monotonic: () => clock.monotonic(),
      });
    },
  });
  const highest = config.priorities.high ?? everyWeight.from - 1;
  const shards =
    redis.high === redis.low
      ? [shard("redis", redis.low, everyWeight)]
      : [
          shard("redis high", redis.high, { ...everyWeight, to: highest }),
          shard("redis low", redis.low, { ...everyWeight, from: highest + 1 }),
        ];
  const broker = new Broker({ shards, ready: store.readyPlaces.bind(store), clock, events });
  // A connection that comes back may lead to a promoted standby.
  events.on("connection.restored", ({ connection }) => {
    if (connection.startsWith("redis")) return;
    store.identity().then(({ epoch }) => broker.renew(epoch), ignore);
  });
  return broker;
}
