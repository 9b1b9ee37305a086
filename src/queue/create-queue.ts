// The queue that the environment asks for. Redis is never trusted to be there: it always has a queue in
// memory behind it. Where it cannot be had at all, one warning says so.

import { loadQueueConfig, type QueueConfig, type QueueOptions } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import { Events } from "../runtime/events.ts";
import { createLog, logEvents } from "../runtime/log.ts";
import { FallbackQueue } from "./fallback-queue.ts";
import type { HealthChecked } from "./health.ts";
import { LateQueue } from "./late-queue.ts";
import { MemoryQueue } from "./memory-queue.ts";
import type { Queue } from "./queue.ts";
import { checkOptions } from "./queue-options.ts";
import { RedisQueue } from "./redis-queue.ts";
import { ShardedQueue } from "./sharded-queue.ts";

export interface CreateQueueOptions extends QueueOptions {
  /** Processes that give the same name share the queue. */
  readonly name?: string;
  /** Whoever brings events of their own gets no log lines from here. */
  readonly events?: Events;
}

interface Setting {
  readonly name: string;
  readonly config: QueueConfig;
  readonly events: Events;
}

export async function createQueue<T>(options: CreateQueueOptions = {}): Promise<Queue<T>> {
  checkOptions(options);
  const config = loadQueueConfig(options);
  const events = options.events ?? new Events();
  if (options.events === undefined) logEvents(events, createLog(config.logLevel), config.logLevel);
  const setting: Setting = { name: options.name ?? "queue", config, events };
  const { redis } = config;
  if (!redis.use) {
    events.emit("queue.chosen", { queue: "memory", reason: redis.reason });
    return memoryQueue(setting);
  }
  try {
    return await redisQueue<T>(setting, redis.high, redis.low);
  } catch (error) {
    if (codeOf(error) !== "REDIS_CLIENT_MISSING") throw error;
    const reason = "the package @redis/client is not installed";
    events.emit("queue.degraded", { queue: "memory", reason, error });
    return memoryQueue(setting);
  }
}

async function redisQueue<T>(setting: Setting, high: string, low: string): Promise<Queue<T>> {
  const { events } = setting;
  if (high === low) {
    const { queue, error } = await openRedis<T>(setting, low, setting.name);
    tell(events, "redis", "Redis was asked for", error);
    return queue;
  }
  const shards = await Promise.all([
    openRedis<T>(setting, high, `${setting.name}-high`),
    openRedis<T>(setting, low, `${setting.name}-low`),
  ]);
  const [first, second] = shards;
  tell(events, "sharded", "two Redis URLs were given", first.error ?? second.error);
  return new ShardedQueue([
    { name: "high", labels: ["high"], queue: first.queue },
    { name: "low", queue: second.queue },
  ]);
}

function tell(events: Events, queue: string, reason: string, error: unknown): void {
  if (error === undefined) {
    events.emit("queue.chosen", { queue, reason });
    return;
  }
  const because = "Redis cannot be reached; memory serves until it is back";
  events.emit("queue.degraded", { queue: "fallback", reason: because, error });
}

/** With an error when the server is down: the queue then begins in memory and moves over later. */
async function openRedis<T>(setting: Setting, url: string, name: string) {
  const { config, events } = setting;
  const connect = () => connectRedis<T>(setting, url, name);
  const options = { name, events, healthCheckTimeoutMs: config.redisHealthCheckTimeoutMs };
  try {
    const queue = new FallbackQueue<T>(await connect(), memoryQueue<T>(setting), options);
    return { queue, error: undefined };
  } catch (error) {
    if (codeOf(error) !== "REDIS_UNAVAILABLE") throw error;
    const down = { ...options, primaryIsDown: true };
    const queue = new FallbackQueue<T>(new LateQueue<T>(connect), memoryQueue<T>(setting), down);
    return { queue, error };
  }
}

function connectRedis<T>(
  setting: Setting,
  url: string,
  name: string,
): Promise<Queue<T> & HealthChecked> {
  const { config, events } = setting;
  return RedisQueue.connect<T>({
    ...{ url, name, events, priorities: config.priorities },
    connectTimeoutMs: config.redisHealthCheckTimeoutMs,
    answerTimeoutMs: config.redisHealthCheckTimeoutMs,
    ...(config.redisReadyKey === undefined ? {} : { readyKey: config.redisReadyKey }),
    ...(config.redisScheduledKey === undefined ? {} : { scheduledKey: config.redisScheduledKey }),
    ...(config.warnDepth === undefined ? {} : { warnDepth: config.warnDepth }),
  });
}

function memoryQueue<T>({ name, config, events }: Setting): MemoryQueue<T> {
  return new MemoryQueue<T>({
    ...{ name, events, priorities: config.priorities },
    ...(config.maxInMemory === undefined ? {} : { maxInMemory: config.maxInMemory }),
    ...(config.warnDepth === undefined ? {} : { warnDepth: config.warnDepth }),
  });
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof MillraceError ? error.code : undefined;
