// The queue on Redis, shared by processes. Every operation is one script call, so it happens whole or not
// at all, by the server's clock; calls of one tick travel together. docs/design/queue.md tells of the keys.

import { MillraceError } from "../domain/errors.ts";
import {
  checkPriorities,
  defaultPriorities,
  type Priorities,
  weightOf,
} from "../domain/priority.ts";
import type { Events } from "../runtime/events.ts";
import type { HealthChecked } from "./health.ts";
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
  checkDelay,
  checkEnqueue,
  checkId,
  checkLimit,
  checkLimitOf,
  checkOptions,
  checkRelease,
  checkTake,
  checkTaken,
  checkText,
  checkTime,
  checkWait,
} from "./queue-options.ts";
import { type ConnectionOptions, RedisConnection } from "./redis/connection.ts";
import { Enqueuer } from "./redis/enqueuer.ts";
import { Holdings } from "./redis/holdings.ts";
import { checkSameSlot, type QueueKeys, queueKeys } from "./redis/keys.ts";
import { Listener } from "./redis/listener.ts";
import { queueScripts, type RunScript } from "./redis/queue-scripts.ts";
import { decodeGrave, decodeHead, decodeRecord } from "./redis/record.ts";
import { Settler } from "./redis/settler.ts";
import { Taker } from "./redis/taker.ts";
import { type RedisTarget, topologyOf } from "./redis/target.ts";

export interface RedisQueueOptions extends RedisTarget {
  /** Queues of one name are one queue. */
  readonly name?: string;
  /** The ready lists are `<readyKey>:<weight>`. */
  readonly readyKey?: string;
  readonly scheduledKey?: string;
  readonly priorities?: Priorities;
  /** The most that may be ready or scheduled. */
  readonly maxDepth?: number;
  readonly warnDepth?: number;
  readonly connectTimeoutMs?: number;
  /** How long to wait for an answer before the server counts as unavailable. */
  readonly answerTimeoutMs?: number;
  /** A process that misses three heartbeats loses what it holds. */
  readonly heartbeatMs?: number;
  readonly events?: Events;
}

interface Setup {
  readonly name: string;
  readonly keys: QueueKeys;
  readonly priorities: Priorities;
  readonly connection: RedisConnection;
  readonly openAnother: () => Promise<RedisConnection>;
  readonly options: RedisQueueOptions;
  readonly limits: ReturnType<typeof limitsOf>;
}

function limitsOf(options: RedisQueueOptions) {
  return {
    maxDepth: checkLimit("maxDepth", options.maxDepth),
    warnDepth: checkLimit("warnDepth", options.warnDepth),
    connectTimeoutMs: checkTime("connectTimeoutMs", options.connectTimeoutMs ?? 5_000),
    answerTimeoutMs: checkTime("answerTimeoutMs", options.answerTimeoutMs ?? 5_000),
    heartbeatMs: checkTime("heartbeatMs", options.heartbeatMs ?? 5_000),
  };
}

export class RedisQueue<T> implements Queue<T>, HealthChecked {
  readonly name: string;
  readonly #keys: QueueKeys;
  readonly #priorities: Priorities;
  readonly #connection: RedisConnection;
  readonly #run: RunScript;
  readonly #enqueuer: Enqueuer<T>;
  readonly #holdings: Holdings;
  readonly #settler: Settler;
  readonly #taker: Taker<QueueItem<T>>;
  readonly #listener: Listener;
  #isShutDown = false;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  private constructor({ options, limits, connection, ...setup }: Setup) {
    const { name, keys, priorities, openAnother } = setup;
    this.name = name;
    this.#keys = keys;
    this.#priorities = priorities;
    this.#connection = connection;
    const run = queueScripts(connection, keys);
    this.#run = run;
    this.#enqueuer = new Enqueuer({
      ...{ run, queue: name, events: options.events },
      ...{ maxDepth: limits.maxDepth, warnDepth: limits.warnDepth },
    });
    this.#holdings = new Holdings({ run, heartbeatMs: limits.heartbeatMs });
    this.#settler = new Settler(this.#holdings);
    this.#taker = new Taker({
      take: (most) => this.#take(most),
      giveBack: (items) => this.#settler.giveBack(items),
      listen: () => this.#listener.listen(),
    });
    this.#listener = new Listener({
      open: openAnother,
      wakeKey: keys.wake,
      onWake: () => this.#taker.wake(),
      isWanted: () => this.#taker.isWaitedFor,
      passOn: () => this.#passOn(),
    });
    connection.onRestored(() => {
      if (this.#holdings.isBeating) this.#holdings.beat().catch(() => {});
    });
  }

  /** Under which this process holds what it takes; it changes when an answer was missed. */
  get takerName(): string {
    return this.#holdings.taker;
  }

  static async connect<T>(options: RedisQueueOptions): Promise<RedisQueue<T>> {
    checkOptions(options);
    const { name = "queue", readyKey, scheduledKey } = options;
    for (const [what, text] of Object.entries({ name, readyKey, scheduledKey })) {
      if (text !== undefined) checkText(what, text);
    }
    const priorities = checkPriorities(options.priorities ?? defaultPriorities);
    const keys = queueKeys({ name, readyKey, scheduledKey });
    if (topologyOf(options) === "cluster") checkSameSlot(keys);
    const limits = limitsOf(options);
    const { connectTimeoutMs, answerTimeoutMs } = limits;
    const target: ConnectionOptions = {
      ...{ url: options.url, name: `redis ${name}`, connectTimeoutMs, answerTimeoutMs },
      ...(options.sentinelMaster === undefined ? {} : { sentinelMaster: options.sentinelMaster }),
    };
    const connection = await RedisConnection.open({ ...target, events: options.events });
    await connection.beAdmitted(keys.wake);
    const openAnother = () => RedisConnection.open(target);
    const setup = { name, keys, priorities, openAnother };
    return new RedisQueue<T>({ ...setup, options, limits, connection });
  }

  async enqueue(job: T, options: EnqueueOptions = {}): Promise<QueueItem<T>> {
    checkEnqueue(options);
    const [item] = await this.enqueueMany([{ ...options, job }]);
    if (item === undefined) throw new Error("an item was enqueued and not answered for");
    return item;
  }

  async enqueueMany(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]> {
    if (this.#isShutDown) throw new MillraceError("QUEUE_CLOSED");
    checkBatch(items);
    if (items.length === 0) return [];
    const checked = items.map((item) => ({
      item,
      weight: weightOf(item.priority, this.#priorities),
      delayMs: checkDelay(item.delayMs),
    }));
    return this.#enqueuer.enqueue(checked);
  }

  async dequeue(options: DequeueOptions = {}): Promise<QueueItem<T> | null> {
    checkWait(options);
    const [item] = await this.dequeueMany({ ...options, max: 1 });
    return item ?? null;
  }

  async dequeueMany(options: DequeueManyOptions): Promise<QueueItem<T>[]> {
    const max = checkTake(options);
    return this.#isClosed ? [] : this.#taker.take(max, options);
  }

  async #take(most: number): Promise<{ items: QueueItem<T>[]; nextDueMs: number }> {
    const { nextDueMs, entries } = await this.#holdings.take(most);
    const items: QueueItem<T>[] = [];
    for (let i = 0; i < entries.length; i += 2) {
      const [id = "", record = ""] = entries.slice(i, i + 2);
      try {
        items.push(decodeRecord<T>(id, record, 1));
      } catch {
        // Written by somebody else; its neighbours are none the worse for it.
        await this.#settler.bury(decodeHead(id, record, 1), "The stored item cannot be read.");
      }
    }
    return { items, nextDueMs };
  }

  async ack(item: QueueItem<T>): Promise<boolean> {
    checkTaken(item);
    return !this.#isClosed && this.#settler.ack(item);
  }

  async release(item: QueueItem<T>, options: { readonly delayMs?: number } = {}): Promise<boolean> {
    const delayMs = checkRelease(item, options);
    return !this.#isClosed && this.#settler.release(item, delayMs);
  }

  async bury(item: QueueItem<T>, error: string | Error): Promise<boolean> {
    const reason = checkBurial(item, error);
    return !this.#isClosed && this.#settler.bury(item, reason);
  }

  async dead(options: { readonly limit?: number } = {}): Promise<DeadItem<T>[]> {
    const limit = checkLimitOf(options);
    if (limit === 0) return [];
    const last = limit === undefined ? -1 : limit - 1;
    const entries = await this.#run<string[]>("dead", ["0", String(last)]);
    const items: DeadItem<T>[] = [];
    for (let i = 0; i < entries.length; i += 2) {
      items.push(decodeGrave<T>(entries[i] ?? "", entries[i + 1] ?? ""));
    }
    return items;
  }

  async requeue(id: string): Promise<boolean> {
    return (await this.#run("requeue", [checkId(id)])) === "requeued";
  }

  async snapshot(): Promise<QueueSnapshot> {
    type Counts = [ready: number, scheduled: number, taken: number, dead: number];
    const [ready, scheduled, taken, dead] = await this.#run<Counts>("snapshot", []);
    const counts = { depth: ready + scheduled, ready, scheduled, taken, dead };
    return { ...counts, shutdown: this.#isShutDown, redis_active: this.#connection.isReady };
  }

  /** In steps, so that other clients of a busy server get their turn; what comes meanwhile may stay. */
  async purge(): Promise<number> {
    const { depth } = await this.snapshot();
    let purged = 0;
    while (purged < depth) {
      const removed = await this.#run<number>("purge", []);
      if (removed === 0) break;
      purged += removed;
    }
    return purged;
  }

  async ping(timeoutMs: number): Promise<void> {
    await this.#connection.ping(this.#keys.wake, checkTime("timeoutMs", timeoutMs));
  }

  /** What is due later stays in Redis, so there is nothing to hand back. */
  async shutdown(): Promise<QueueItem<T>[]> {
    if (this.#isShutDown) return [];
    this.#isShutDown = true;
    this.#taker.drain();
    await this.#listener.close();
    this.#passOn();
    this.#connection.keepOnlyWhile(() => this.#holdings.size > 0);
    return [];
  }

  /** Shuts down, gives back at once what is still held, and lets go of Redis. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.shutdown();
    await this.#taker.idle;
    // Without Redis the heartbeat is missed, and others get it then.
    await this.#holdings.retire().catch(() => {});
    this.#isClosed = true;
    this.#connection.close();
  }

  /** A signal that this process took, or may have taken, and does not need. */
  #passOn(): void {
    this.#connection.send(this.#keys.wake, ["RPUSH", this.#keys.wake, "1"]).catch(() => {});
  }
}
