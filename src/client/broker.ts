// From configuration to a broker, or to none.

import type { Config } from "../config.ts";
import { Broker, type Shard } from "../queue/broker.ts";
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
const ignore = () => {};

export function openBroker({ config, store, clock, events }: Parts): Broker | null {
  const { redis } = config;
  if (!redis.use) return null;
  const open = async (): Promise<Shard[]> => {
    const { RedisWindow } = await import("../queue/redis/window.ts");
    const { epoch, namespace } = await store.identity();
    const shard = async (name: string, url: string, keeps: Shard["keeps"]): Promise<Shard> => ({
      name,
      keeps,
      window: await RedisWindow.open({
        ...{ url, epoch, namespace, answerTimeoutMs, events },
        connectTimeoutMs: config.redisHealthCheckTimeoutMs,
        monotonic: () => clock.monotonic(),
      }),
    });
    if (redis.high === redis.low) return [await shard("redis", redis.low, () => true)];
    const highest = config.priorities.high ?? Number.NEGATIVE_INFINITY;
    return [
      await shard("redis high", redis.high, (weight) => weight <= highest),
      await shard("redis low", redis.low, (weight) => weight > highest),
    ];
  };
  const broker = new Broker({ open, ready: store.readyPlaces.bind(store), clock, events });
  // A connection that comes back may lead to a promoted standby.
  events.on("connection.restored", ({ connection }) => {
    if (connection.startsWith("redis")) return;
    store.identity().then(({ epoch }) => broker.renew(epoch), ignore);
  });
  return broker;
}
