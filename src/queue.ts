export type { QueueOptions } from "./config.ts";
export {
  type Classifier,
  type ErrorClass,
  type Failure,
  JobFailure,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "./domain/error-class.ts";
export { type ErrorCode, MillraceError } from "./domain/errors.ts";
export type { Priorities } from "./domain/priority.ts";
export { exponentialBackoff, type RetryPolicy } from "./domain/retry-policy.ts";
export { type CreateQueueOptions, createQueue } from "./queue/create-queue.ts";
export { FallbackQueue, type FallbackQueueOptions } from "./queue/fallback-queue.ts";
export type { HandsOver } from "./queue/hands-over.ts";
export type { HealthChecked } from "./queue/health.ts";
export { MemoryQueue, type MemoryQueueOptions } from "./queue/memory-queue.ts";
export type {
  DeadItem,
  DequeueManyOptions,
  DequeueOptions,
  EnqueueOptions,
  NewItem,
  Queue,
  QueueItem,
  QueueSnapshot,
} from "./queue/queue.ts";
export {
  QueueWorker,
  type QueueWorkerOptions,
  type WorkerException,
} from "./queue/queue-worker.ts";
export { RedisQueue, type RedisQueueOptions } from "./queue/redis-queue.ts";
export { type Shard, ShardedQueue, type ShardedQueueOptions } from "./queue/sharded-queue.ts";
export { type EventMap, type EventName, Events } from "./runtime/events.ts";
