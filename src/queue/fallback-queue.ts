// Two queues as one: the primary while it is healthy, the secondary while it is not. What the secondary
// has gathered moves to the primary as soon as that is back. Every item has its id before it goes
// anywhere, so that one whose answer was lost is known again. docs/design/queue.md has the windows.

import { MillraceError } from "../domain/errors.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import { withAnySignal } from "./any-signal.ts";
import { FallbackState, type Part } from "./fallback-state.ts";
import type { HandsOver } from "./hands-over.ts";
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
  checkEnqueue,
  checkId,
  checkLimitOf,
  checkOptions,
  checkQueue,
  checkRelease,
  checkTake,
  checkTaken,
  checkText,
  checkTime,
  checkWait,
  jsonOf,
} from "./queue-options.ts";
import { sumOf } from "./snapshot-sum.ts";

export interface FallbackQueueOptions {
  readonly name?: string;
  readonly healthCheckTimeoutMs?: number;
  readonly healthCheckIntervalMs?: number;
  /** Begins on the secondary; whoever knows this has said so already. */
  readonly primaryIsDown?: boolean;
  readonly clock?: Clock;
  readonly events?: Events;
}

export class FallbackQueue<T> implements Queue<T> {
  readonly name: string;
  readonly #primary: Queue<T>;
  readonly #secondary: Queue<T> & HandsOver<T>;
  readonly #state: FallbackState<T>;
  readonly #clock: Clock;
  readonly #healthCheckTimeoutMs: number;
  /** By id, what each part granted: a settle goes to the part that did. */
  readonly #granted: Record<Part, Map<string, QueueItem<T>>> = {
    primary: new Map(),
    secondary: new Map(),
  };
  #isShutDown = false;

  constructor(
    primary: Queue<T> & HealthChecked,
    secondary: Queue<T> & HandsOver<T>,
    options: FallbackQueueOptions = {},
  ) {
    checkQueue(primary);
    checkQueue(secondary);
    checkOptions(options);
    this.name = checkText("name", options.name ?? "fallback");
    this.#primary = primary;
    this.#secondary = secondary;
    this.#clock = options.clock ?? systemClock;
    const { healthCheckTimeoutMs = 2_000, healthCheckIntervalMs = 1_000 } = options;
    checkTime("healthCheckTimeoutMs", healthCheckTimeoutMs);
    checkTime("healthCheckIntervalMs", healthCheckIntervalMs);
    this.#healthCheckTimeoutMs = healthCheckTimeoutMs;
    this.#state = new FallbackState(primary, secondary, {
      ...{ name: this.name, clock: this.#clock, healthCheckTimeoutMs, healthCheckIntervalMs },
      ...{ isDown: options.primaryIsDown ?? false, events: options.events },
    });
  }

  async enqueue(job: T, options: EnqueueOptions = {}): Promise<QueueItem<T>> {
    checkEnqueue(options);
    const [item] = await this.enqueueMany([{ ...options, job }]);
    if (item === undefined) throw new Error("nothing was enqueued");
    return item;
  }

  async enqueueMany(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]> {
    if (this.#isShutDown) throw new MillraceError("QUEUE_CLOSED");
    checkBatch(items);
    const named = items.map((item) => ({ ...item, id: item.id ?? uuidv7() }));
    if (this.#state.active === "secondary") return this.#enqueueInSecondary(named);
    const answer = await this.#state.ask(this.#primary.enqueueMany(named));
    if (answer.is === "answered") {
      // Whatever there was under these ids, the primary's item is now the one that was asked for.
      for (const { id } of named) this.#state.resolveDoubt(id);
      return answer.value;
    }
    if (answer.is === "refused") throw answer.error;
    for (const { id } of named) this.#state.doubt(id);
    try {
      return await this.#enqueueInSecondary(named);
    } catch (error) {
      for (const { id } of named) this.#state.resolveDoubt(id);
      throw error;
    }
  }

  async dequeue(options: DequeueOptions = {}): Promise<QueueItem<T> | null> {
    checkWait(options);
    return (await this.dequeueMany({ ...options, max: 1 }))[0] ?? null;
  }

  async dequeueMany(options: DequeueManyOptions): Promise<QueueItem<T>[]> {
    const max = checkTake(options);
    const { signal: given, timeoutMs = 0 } = options;
    const end = this.#clock.monotonic() + timeoutMs;
    for (;;) {
      if (given?.aborted) return [];
      const { active, switched } = this.#state;
      const leftMs = Math.max(0, end - this.#clock.monotonic());
      const leftovers = active === "primary" && (await this.#secondary.snapshot()).ready > 0;
      const waitMs = leftovers || this.#isShutDown ? 0 : leftMs;
      const items = await withAnySignal([switched, given], (signal) => {
        const wait = { max, timeoutMs: waitMs, signal };
        return active === "primary" ? this.#takeFromPrimary(wait) : this.#takeFromSecondary(wait);
      });
      if (items.length > 0) return items;
      const rest = leftovers ? await this.#takeFromSecondary({ max }) : [];
      if (rest.length > 0) return rest;
      if (!leftovers && this.#state.active === active) return [];
    }
  }

  async ack(item: QueueItem<T>): Promise<boolean> {
    checkTaken(item);
    const settle = (queue: Queue<T>) => queue.ack(item);
    return this.#settle(item, settle, () => this.#state.owed.ack(item));
  }

  async release(item: QueueItem<T>, options: { readonly delayMs?: number } = {}): Promise<boolean> {
    const delayMs = checkRelease(item, options);
    const settle = (queue: Queue<T>) => queue.release(item, { delayMs });
    return this.#settle(item, settle, () => this.#state.owed.release(item, delayMs));
  }

  async bury(item: QueueItem<T>, error: string | Error): Promise<boolean> {
    const reason = checkBurial(item, error);
    const settle = (queue: Queue<T>) => queue.bury(item, reason);
    return this.#settle(item, settle, () => this.#state.owed.bury(item, reason));
  }

  async dead(options: { readonly limit?: number } = {}): Promise<DeadItem<T>[]> {
    const limit = checkLimitOf(options);
    const ofPrimary = await this.#askPrimary(() => this.#primary.dead(options), []);
    const all = [...ofPrimary, ...(await this.#secondary.dead(options))];
    return all.sort((a, b) => a.diedAt - b.diedAt).slice(0, limit);
  }

  async requeue(id: string): Promise<boolean> {
    checkId(id);
    if (await this.#secondary.requeue(id)) return true;
    return this.#askPrimary(() => this.#primary.requeue(id), false);
  }

  async snapshot(): Promise<QueueSnapshot> {
    const secondary = await this.#secondary.snapshot();
    const primary = await this.#askPrimary(() => this.#primary.snapshot(), undefined);
    const parts = primary === undefined ? { secondary } : { primary, secondary };
    return {
      ...sumOf(Object.values(parts)),
      shutdown: this.#isShutDown,
      redis_active: primary?.redis_active ?? false,
      active: this.#state.active,
      parts,
    };
  }

  async purge(): Promise<number> {
    const ofPrimary = await this.#askPrimary(() => this.#primary.purge(), 0);
    return ofPrimary + (await this.#secondary.purge());
  }

  async shutdown(): Promise<QueueItem<T>[]> {
    this.#isShutDown = true;
    // What moves is either in the primary or back in the secondary before these are shut down.
    await this.#state.stop();
    // Also while it is away: it must not keep on trying.
    const answer = await this.#state.ask(this.#primary.shutdown());
    const ofPrimary = answer.is === "answered" ? answer.value : [];
    return [...ofPrimary, ...(await this.#secondary.shutdown())];
  }

  /** Memory would take any job; the primary, to which it moves later, must be able to store it. */
  async #enqueueInSecondary(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]> {
    for (const { job } of items) jsonOf(job);
    return this.#secondary.enqueueMany(items);
  }

  async #takeFromSecondary(options: DequeueManyOptions): Promise<QueueItem<T>[]> {
    const items = await this.#secondary.dequeueMany(options);
    for (const item of items) this.#granted.secondary.set(item.id, item);
    return items;
  }

  async #takeFromPrimary(options: Waiting): Promise<QueueItem<T>[]> {
    const answer = await this.#state.ask(this.#primary.dequeueMany(options), {
      timeoutMs: options.timeoutMs + this.#healthCheckTimeoutMs,
      signal: options.signal,
      late: (items) => {
        for (const item of items) {
          this.#granted.primary.set(item.id, item);
          void this.release(item);
        }
      },
    });
    if (answer.is === "refused") throw answer.error;
    if (answer.is === "lost") return [];
    const fresh: QueueItem<T>[] = [];
    for (const item of answer.value) {
      this.#granted.primary.set(item.id, item);
      // The secondary served it already: this is the copy whose enqueue was not answered.
      if (this.#state.resolveDoubt(item.id)) await this.ack(item);
      else fresh.push(item);
    }
    return fresh;
  }

  /** Tells the part that granted the item; while that is away, `owe` keeps it for later. */
  async #settle(
    item: QueueItem<T>,
    settle: (queue: Queue<T>) => Promise<boolean>,
    owe: () => void,
  ): Promise<boolean> {
    if (this.#endGrant("secondary", item)) return settle(this.#secondary);
    if (!this.#endGrant("primary", item)) return false;
    if (this.#state.active === "primary") {
      const answer = await this.#state.ask(settle(this.#primary));
      if (answer.is === "answered") return answer.value;
      if (answer.is === "refused") throw answer.error;
    }
    owe();
    return true;
  }

  #endGrant(part: Part, { id, sequence, attempt }: QueueItem<T>): boolean {
    const granted = this.#granted[part].get(id);
    if (granted?.sequence !== sequence || granted.attempt !== attempt) return false;
    return this.#granted[part].delete(id);
  }

  async #askPrimary<R, N>(call: () => Promise<R>, otherwise: N): Promise<R | N> {
    if (this.#state.active === "secondary") return otherwise;
    const answer = await this.#state.ask(call());
    if (answer.is === "refused") throw answer.error;
    return answer.is === "answered" ? answer.value : otherwise;
  }
}

interface Waiting extends DequeueManyOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}
