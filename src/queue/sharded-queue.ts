// Several queues as one: each label lives in one shard, and takes look into the shards in their order.
// A shard that is down stops nobody else: takes pass it over, and only its own labels are refused.

import { MillraceError } from "../domain/errors.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { withAnySignal } from "./any-signal.ts";
import type {
  DeadItem,
  DequeueManyOptions,
  DequeueOptions,
  EnqueueOptions,
  NewItem,
  Queue,
  QueueItem,
  QueueSnapshot,
} from "./queue.ts";
import {
  checkBatch,
  checkBurial,
  checkEnqueue,
  checkId,
  checkLimitOf,
  checkOptions,
  checkQueue,
  checkRelease,
  checkTake,
  checkTaken,
  checkTime,
  checkWait,
} from "./queue-options.ts";
import { sumOf } from "./snapshot-sum.ts";

export interface Shard<T> {
  readonly name: string;
  /** The last shard takes every label that no other one has. */
  readonly labels?: readonly string[];
  readonly queue: Queue<T>;
}

export interface ShardedQueueOptions {
  /** How soon to ask a shard again that failed while others wait. */
  readonly retryMs?: number;
  readonly clock?: Clock;
}

export class ShardedQueue<T> implements Queue<T> {
  readonly #shards: readonly Shard<T>[];
  readonly #byLabel: ReadonlyMap<string, Shard<T>>;
  readonly #last: Shard<T>;
  readonly #retryMs: number;
  readonly #clock: Clock;
  /** Until when takes pass a shard over that has just failed. */
  readonly #downUntil = new Map<Shard<T>, number>();
  #isShutDown = false;

  /** The first shard is looked into first. */
  constructor(shards: readonly Shard<T>[], options: ShardedQueueOptions = {}) {
    checkShards(shards);
    checkOptions(options);
    const last = shards.at(-1);
    if (last === undefined) throw new MillraceError("OPTION_INVALID", "There must be a shard.");
    this.#shards = shards;
    this.#last = last;
    this.#byLabel = new Map(
      shards.flatMap((shard) => (shard.labels ?? []).map((label) => [label, shard])),
    );
    this.#retryMs = checkTime("retryMs", options.retryMs ?? 1_000);
    this.#clock = options.clock ?? systemClock;
  }

  async enqueue(job: T, options: EnqueueOptions = {}): Promise<QueueItem<T>> {
    checkEnqueue(options);
    return this.#shardOf(options.priority).queue.enqueue(job, options);
  }

  /** All or none inside a shard. `accepted` in the error's details tells of other shards' items. */
  async enqueueMany(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]> {
    checkBatch(items);
    const answers = new Map<NewItem<T>, QueueItem<T>>();
    // The last shard has the unknown labels and refuses them before another one has accepted anything.
    for (const shard of [...this.#shards].reverse()) {
      const own = items.filter(({ priority }) => this.#shardOf(priority) === shard);
      if (own.length === 0 && items.length > 0) continue;
      const accepted = await shard.queue.enqueueMany(own).catch((error) => {
        const accepted = [...answers.values()].map(({ id }) => id);
        throw accepted.length === 0 ? error : withDetails(error, { accepted });
      });
      for (const [i, item] of own.entries()) answers.set(item, accepted[i] as QueueItem<T>);
    }
    return items.map((item) => answers.get(item) as QueueItem<T>);
  }

  async dequeue(options: DequeueOptions = {}): Promise<QueueItem<T> | null> {
    checkWait(options);
    return (await this.dequeueMany({ ...options, max: 1 }))[0] ?? null;
  }

  async dequeueMany(options: DequeueManyOptions): Promise<QueueItem<T>[]> {
    const max = checkTake(options);
    if (options.signal?.aborted) return [];
    const here = await this.#takeNow(max);
    const { timeoutMs = 0 } = options;
    if (here.length > 0 || timeoutMs <= 0 || this.#isShutDown) return here;
    return this.#takeFirst({ ...options, timeoutMs });
  }

  async ack(item: QueueItem<T>): Promise<boolean> {
    checkTaken(item);
    return this.#shardOf(item.priority).queue.ack(item);
  }

  async release(item: QueueItem<T>, options: { readonly delayMs?: number } = {}): Promise<boolean> {
    const delayMs = checkRelease(item, options);
    return this.#shardOf(item.priority).queue.release(item, { delayMs });
  }

  async bury(item: QueueItem<T>, error: string | Error): Promise<boolean> {
    const reason = checkBurial(item, error);
    return this.#shardOf(item.priority).queue.bury(item, reason);
  }

  async dead(options: { readonly limit?: number } = {}): Promise<DeadItem<T>[]> {
    const limit = checkLimitOf(options);
    const lists = await this.#fromEach((queue) => queue.dead(options));
    const all = [...lists.values()].flat().sort((a, b) => a.diedAt - b.diedAt);
    return all.slice(0, limit);
  }

  async requeue(id: string): Promise<boolean> {
    checkId(id);
    for (const { queue } of this.#shards) if (await queue.requeue(id)) return true;
    return false;
  }

  async snapshot(): Promise<QueueSnapshot> {
    const found = await this.#fromEach((queue) => queue.snapshot());
    const snapshots = [...found.values()];
    return {
      ...sumOf(snapshots),
      shutdown: this.#isShutDown,
      redis_active: snapshots.some(({ redis_active }) => redis_active),
      parts: Object.fromEntries([...found].map(([{ name }, snapshot]) => [name, snapshot])),
    };
  }

  /** Every shard that can be reached; `purged` in the error's details tells of them when one cannot. */
  async purge(): Promise<number> {
    const answers = await Promise.allSettled(this.#shards.map(({ queue }) => queue.purge()));
    let purged = 0;
    for (const answer of answers) if (answer.status === "fulfilled") purged += answer.value;
    const failed = answers.find((answer) => answer.status === "rejected");
    if (failed !== undefined) throw withDetails(failed.reason, { purged });
    return purged;
  }

  async shutdown(): Promise<QueueItem<T>[]> {
    this.#isShutDown = true;
    const handedBack = await this.#fromEach((queue) => queue.shutdown());
    return [...handedBack.values()].flat();
  }

  #shardOf(label = "normal"): Shard<T> {
    return this.#byLabel.get(label) ?? this.#last;
  }

  /** What the shards that can be reached say; fails when none can. */
  async #fromEach<R>(call: (queue: Queue<T>) => Promise<R>): Promise<Map<Shard<T>, R>> {
    const answers = await Promise.allSettled(this.#shards.map(({ queue }) => call(queue)));
    const found = new Map<Shard<T>, R>();
    for (const [i, answer] of answers.entries()) {
      const shard = this.#shards[i];
      if (answer.status === "fulfilled" && shard !== undefined) found.set(shard, answer.value);
    }
    const failed = answers.find((answer) => answer.status === "rejected");
    if (found.size === 0 && failed !== undefined) throw failed.reason;
    return found;
  }

  async #takeNow(max: number): Promise<QueueItem<T>[]> {
    const items: QueueItem<T>[] = [];
    for (const shard of this.#shards) {
      if (items.length === max) break;
      if ((this.#downUntil.get(shard) ?? 0) > this.#clock.monotonic()) continue;
      items.push(...((await this.#takeFrom(shard, { max: max - items.length })) ?? []));
    }
    return items;
  }

  /** Undefined when the shard failed. */
  async #takeFrom(shard: Shard<T>, options: DequeueManyOptions) {
    try {
      return await shard.queue.dequeueMany(options);
    } catch {
      this.#downUntil.set(shard, this.#clock.monotonic() + this.#retryMs);
      return undefined;
    }
  }

  /** Waits at all shards; the first that serves ends the wait, and what others served goes back. */
  #takeFirst({ max, timeoutMs = 0, signal }: DequeueManyOptions): Promise<QueueItem<T>[]> {
    const served = new AbortController();
    const end = this.#clock.monotonic() + timeoutMs;
    return new Promise((resolve) => {
      const waits = this.#shards.map(async (shard) => {
        const items = await withAnySignal([served.signal, signal], (either) =>
          this.#waitAt(shard, max, end, either),
        );
        if (items.length === 0) return;
        if (served.signal.aborted) for (const item of items) await this.release(item);
        else resolve(items);
        served.abort();
      });
      void Promise.allSettled(waits).then(() => resolve([]));
    });
  }

  async #waitAt(shard: Shard<T>, max: number, end: number, signal: AbortSignal) {
    for (;;) {
      const timeoutMs = end - this.#clock.monotonic();
      if (timeoutMs <= 0 || signal.aborted || this.#isShutDown) return [];
      const items = await this.#takeFrom(shard, { max, timeoutMs, signal });
      if (items !== undefined) return items;
      await this.#clock.sleep(Math.min(this.#retryMs, timeoutMs), signal);
    }
  }
}

function checkShards<T>(shards: readonly Shard<T>[]): void {
  if (!Array.isArray(shards))
    throw new MillraceError("OPTION_INVALID", "A sharded queue needs a list of shards.");
  for (const shard of shards) {
    checkOptions(shard);
    checkQueue(shard.queue);
    if (shard.labels !== undefined && !Array.isArray(shard.labels))
      throw new MillraceError("OPTION_INVALID", "A shard's labels must be a list.");
  }
}

function withDetails(error: unknown, more: object): unknown {
  if (!(error instanceof MillraceError)) return error;
  const details = { ...error.details, ...more };
  return new MillraceError(error.code, error.message, { cause: error, details });
}
