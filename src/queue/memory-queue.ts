// The queue in one process: items in a table, and two heaps of their sequences. A due item becomes ready
// when somebody looks, or when the one timer fires that is set while a take waits.

import { MillraceError } from "../domain/errors.ts";
import {
  checkPriorities,
  defaultPriorities,
  type Priorities,
  weightOf,
} from "../domain/priority.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { DeadList } from "./dead-list.ts";
import { DepthMark } from "./depth-mark.ts";
import { DueTimer } from "./due-timer.ts";
import type { HandsOver } from "./hands-over.ts";
import { ItemHeaps } from "./item-heaps.ts";
import { ItemTable } from "./item-table.ts";
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
  checkWait,
} from "./queue-options.ts";
import { Waiters } from "./waiters.ts";

export interface MemoryQueueOptions {
  readonly name?: string;
  readonly priorities?: Priorities;
  /** The most that may be ready or scheduled. */
  readonly maxInMemory?: number;
  readonly warnDepth?: number;
  readonly clock?: Clock;
  readonly events?: Events;
}

const noOptions: EnqueueOptions = Object.freeze({});

export class MemoryQueue<T> implements Queue<T>, HandsOver<T> {
  readonly name: string;
  readonly #priorities: Priorities;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #maxInMemory: number;
  readonly #mark: DepthMark;
  readonly #clock: Clock;
  readonly #table = new ItemTable<T>();
  readonly #heaps: ItemHeaps;
  readonly #waiters: Waiters<QueueItem<T>[]>;
  readonly #dead = new DeadList<T>();
  #sequence = 0;
  readonly #timer: DueTimer;
  #isShutDown = false;

  constructor(options: MemoryQueueOptions = {}) {
    checkOptions(options);
    this.name = checkText("name", options.name ?? "memory");
    this.#priorities = checkPriorities(options.priorities ?? defaultPriorities);
    this.#weights = new Map(Object.entries(this.#priorities));
    this.#maxInMemory = checkLimit("maxInMemory", options.maxInMemory);
    const warnDepth = checkLimit("warnDepth", options.warnDepth);
    this.#mark = new DepthMark(this.name, warnDepth, options.events);
    this.#clock = options.clock ?? systemClock;
    this.#heaps = new ItemHeaps(this.#clock);
    this.#waiters = new Waiters(this.#clock);
    this.#timer = new DueTimer(this.#clock, () => this.#promote());
  }

  async enqueue(job: T, options: EnqueueOptions = noOptions): Promise<QueueItem<T>> {
    if (this.#isShutDown) throw new MillraceError("QUEUE_CLOSED");
    checkEnqueue(options);
    this.#weightOf(options.priority);
    const known = options.id === undefined ? undefined : this.#table.find(options.id);
    if (known !== undefined) return known;
    this.#refuseOverflow(1);
    const item = this.#add(job, options);
    this.#afterAdding();
    return item;
  }

  async enqueueMany(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]> {
    if (this.#isShutDown) throw new MillraceError("QUEUE_CLOSED");
    checkBatch(items);
    for (const { priority } of items) this.#weightOf(priority);
    this.#refuseOverflow(this.#table.countNew(items));
    const now = this.#now();
    const answers = items.map((item) => {
      const known = item.id === undefined ? undefined : this.#table.find(item.id);
      return known ?? this.#add(item.job, item, now);
    });
    this.#afterAdding();
    return answers;
  }

  async dequeue(options: DequeueOptions = {}): Promise<QueueItem<T> | null> {
    checkWait(options);
    this.#promote();
    if (this.#heaps.ready > 0 && options.signal?.aborted !== true) return this.#takeOne();
    return (await this.#wait(1, options))[0] ?? null;
  }

  async dequeueMany(options: DequeueManyOptions): Promise<QueueItem<T>[]> {
    const max = checkTake(options);
    this.#promote();
    if (this.#heaps.ready > 0 && options.signal?.aborted !== true) return this.#take(max);
    return this.#wait(max, options);
  }

  async ack(item: QueueItem<T>): Promise<boolean> {
    checkTaken(item);
    if (!this.#table.isHeldBy(item)) return false;
    this.#table.remove(item.sequence);
    return true;
  }

  async release(item: QueueItem<T>, options: { readonly delayMs?: number } = {}): Promise<boolean> {
    const delayMs = checkRelease(item, options);
    if (!this.#table.isHeldBy(item)) return false;
    const { weight, sequence } = this.#table.giveBack(item.sequence, this.#now() + delayMs);
    this.#heaps.push(weight, sequence, delayMs);
    this.#afterAdding();
    return true;
  }

  async bury(item: QueueItem<T>, error: string | Error): Promise<boolean> {
    const reason = checkBurial(item, error);
    if (!this.#table.isHeldBy(item)) return false;
    this.#dead.add(this.#table.remove(item.sequence), this.#now(), reason);
    return true;
  }

  async dead(options: { readonly limit?: number } = {}): Promise<DeadItem<T>[]> {
    return this.#dead.list(checkLimitOf(options));
  }

  async requeue(id: string): Promise<boolean> {
    checkId(id);
    const dead = this.#table.find(id) === undefined ? this.#dead.remove(id) : undefined;
    if (dead === undefined) return false;
    this.#add(dead.job, dead);
    this.#afterAdding();
    return true;
  }

  async snapshot(): Promise<QueueSnapshot> {
    this.#promote();
    return {
      depth: this.#heaps.depth,
      ready: this.#heaps.ready,
      scheduled: this.#heaps.scheduled,
      taken: this.#table.takenCount,
      dead: this.#dead.size,
      shutdown: this.#isShutDown,
      redis_active: false,
    };
  }

  async purge(): Promise<number> {
    const count = this.#heaps.depth;
    while (this.#heaps.ready > 0) this.#table.remove(this.#heaps.popReady());
    while (this.#heaps.scheduled > 0) this.#table.remove(this.#heaps.popScheduled());
    this.#mark.note(0);
    return count;
  }

  /** Answers the items that were due later, the earliest first; they are in the queue no more. */
  async shutdown(): Promise<QueueItem<T>[]> {
    this.#isShutDown = true;
    this.#promote();
    this.#waiters.endAll([]);
    const handedBack: QueueItem<T>[] = [];
    while (this.#heaps.scheduled > 0) {
      handedBack.push(this.#table.remove(this.#heaps.popScheduled()));
    }
    return handedBack;
  }

  offer(max: number): QueueItem<T>[] {
    this.#promote();
    const items: QueueItem<T>[] = [];
    while (items.length < max && this.#heaps.depth > 0) {
      const sequence = this.#heaps.ready > 0 ? this.#heaps.popReady() : this.#heaps.popScheduled();
      items.push(this.#table.at(sequence));
    }
    this.#mark.note(this.#heaps.depth);
    return items;
  }

  handedOver(items: readonly QueueItem<T>[]): void {
    for (const { sequence } of items) this.#table.remove(sequence);
  }

  takeBack(items: readonly QueueItem<T>[]): void {
    const now = this.#now();
    for (const { weight, sequence, readyAt } of items) {
      this.#heaps.push(weight, sequence, Math.max(0, readyAt - now));
    }
    this.#afterAdding();
  }

  #now(): number {
    return this.#clock.now().getTime();
  }

  #weightOf(label = "normal"): number {
    return this.#weights.get(label) ?? weightOf(label, this.#priorities);
  }

  #refuseOverflow(added: number): void {
    const depth = this.#heaps.depth;
    if (depth + added <= this.#maxInMemory) return;
    const details = { depth, added, maxInMemory: this.#maxInMemory };
    throw new MillraceError("QUEUE_FULL", undefined, { details });
  }

  #add(job: T, options: EnqueueOptions, now = this.#now()): QueueItem<T> {
    const weight = this.#weightOf(options.priority);
    const delayMs = checkDelay(options.delayMs);
    const sequence = ++this.#sequence;
    const { id = this.#table.makeId(sequence), priority = "normal", correlationId } = options;
    const fields = {
      id,
      job,
      priority,
      weight,
      enqueuedAt: now,
      readyAt: now + delayMs,
      sequence,
      attempt: 0,
    };
    const item = correlationId === undefined ? fields : { ...fields, correlationId };
    this.#table.add(item, options.id !== undefined);
    this.#heaps.push(weight, sequence, delayMs);
    return item;
  }

  #afterAdding(): void {
    this.#mark.note(this.#heaps.depth);
    if (this.#waiters.size > 0) this.#serve();
  }

  /** Makes ready what is due, and serves those who wait for it before anybody new. */
  #promote(): void {
    this.#heaps.promote();
    if (this.#waiters.size > 0) this.#serve();
  }

  #serve(): void {
    while (this.#waiters.size > 0 && this.#heaps.ready > 0) {
      this.#waiters.serve((max) => this.#take(max));
    }
    this.#setTimer();
  }

  #takeOne(): QueueItem<T> {
    const item = this.#table.take(this.#heaps.popReady());
    this.#mark.note(this.#heaps.depth);
    return item;
  }

  #take(max: number): QueueItem<T>[] {
    const items: QueueItem<T>[] = [];
    while (items.length < max && this.#heaps.ready > 0) items.push(this.#takeOne());
    return items;
  }

  async #wait(max: number, options: DequeueOptions): Promise<QueueItem<T>[]> {
    const { timeoutMs = 0, signal } = options;
    if (timeoutMs <= 0 || this.#isShutDown || signal?.aborted === true) return [];
    const served = this.#waiters.wait(max, options, []);
    this.#setTimer();
    const items = await served;
    this.#setTimer();
    return items;
  }

  /** Nobody waits: no timer. */
  #setTimer(): void {
    const isWaitedFor = this.#waiters.size > 0;
    this.#timer.setTo(isWaitedFor ? this.#heaps.nextDueAt : Number.POSITIVE_INFINITY);
  }
}
