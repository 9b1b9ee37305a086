// One poll serves all robots that wait in this process: `next` calls are collected, and one statement
// takes for all of them. Who finds nothing waits; notices wake those of the queue, and a tick once a
// second covers lost notices with one statement, however many wait.

import { randomUUID } from "node:crypto";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ItemHold, ItemWish, LeasedItem } from "../store/item.ts";
import type { Notice } from "../store/store.ts";

export interface TakeRequest {
  readonly queueId: number;
  readonly tenant: string;
  readonly robot: string;
  readonly holder: string;
  readonly leaseMs: number;
  readonly count: number;
  readonly waitMs: number;
  /** Is whoever asked still allowed to? Asked again of those who have waited. */
  readonly isAllowed: () => Promise<boolean>;
}

interface Waiter extends TakeRequest {
  readonly since: number;
  readonly until: number;
  readonly resolve: (items: LeasedItem[]) => void;
  readonly reject: (error: unknown) => void;
  /** When something came that it has not asked for yet, by this taker's count; 0: nothing has. */
  dueSince: number;
  timer: NodeJS.Timeout | null;
}

export interface ItemTakerOptions {
  readonly take: (wishes: readonly ItemWish[]) => Promise<LeasedItem[]>;
  readonly release: (holds: readonly ItemHold[]) => Promise<unknown>;
  /** null: there is no such queue any more. */
  readonly queue: (id: number) => Promise<QueueKind | null>;
  readonly clock: Clock;
}

export interface QueueKind {
  /** It has limits, keys or ageing, and they are to be kept. */
  readonly limited: boolean;
}

const groupOf = ({ queueId, tenant }: Waiter) => `${queueId}/${tenant}`;
/** A key that was good this long ago need not be looked at again: revocations are felt within five seconds. */
const allowedForMs = 2_000;
const mostWishes = 500;
const mostWaiters = 20_000;
const tickMs = 1_000;

export class ItemTaker {
  readonly #options: ItemTakerOptions;
  readonly #waiters = new Set<Waiter>();
  /** What is known of the queues that somebody waits for, until something is heard of them. */
  readonly #kinds = new Map<number, QueueKind>();
  #polling: Promise<void> | null = null;
  #tick: NodeJS.Timeout | null = null;
  #closed = false;
  #moment = 0;
  #polls = 0;

  constructor(options: ItemTakerOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** How often it has asked the store, for all who wait together. */
  get polls(): number {
    return this.#polls;
  }

  /** Nothing after `waitMs`, or as soon as the signal says that nobody waits for the answer. */
  take(request: TakeRequest, signal: AbortSignal): Promise<LeasedItem[]> {
    if (this.#closed || signal.aborted) return Promise.resolve([]);
    if (this.#waiters.size >= mostWaiters)
      return Promise.reject(new MillraceError("RATE_LIMITED", "Too many robots wait here."));
    return new Promise((resolve, reject) => {
      const since = this.#options.clock.monotonic();
      const until = since + request.waitMs;
      const dueSince = ++this.#moment;
      const waiter: Waiter = { ...request, since, until, resolve, reject, dueSince, timer: null };
      this.#kinds.delete(request.queueId);
      this.#waiters.add(waiter);
      this.#tick ??= setInterval(() => this.#wakeAll(), tickMs);
      signal.addEventListener("abort", () => this.#end(waiter, []), { once: true });
      this.#poll();
    });
  }

  hear(notice: Notice): void {
    if (notice.kind === "ready") this.wake(notice.queueIds);
    if (notice.kind === "queues") this.wake([]);
  }

  /** None: all of them. */
  wake(queueIds: readonly number[]): void {
    if (queueIds.length === 0) {
      this.#kinds.clear();
      this.#wakeAll();
      return;
    }
    for (const id of queueIds) this.#kinds.delete(id);
    this.#markDue((waiter) => queueIds.includes(waiter.queueId));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiters) this.#end(waiter, []);
    await this.#polling;
  }

  #wakeAll(): void {
    this.#markDue(() => true);
  }

  #markDue(isMeant: (waiter: Waiter) => boolean): void {
    const moment = ++this.#moment;
    let isWanted = false;
    for (const waiter of this.#waiters) {
      if (!isMeant(waiter)) continue;
      waiter.dueSince = moment;
      isWanted = true;
    }
    if (isWanted) this.#poll();
  }

  #poll(): void {
    this.#polling ??= this.#rounds().finally(() => {
      this.#polling = null;
    });
  }

  async #rounds(): Promise<void> {
    // Everybody who asks in this tick of the event loop is served together.
    await new Promise(setImmediate);
    for (;;) {
      const asking = this.#nextAsking();
      if (asking.length === 0) return;
      await this.#round(asking);
    }
  }

  #nextAsking(): Waiter[] {
    const asking: Waiter[] = [];
    let wishes = 0;
    for (const waiter of this.#waiters) {
      if (waiter.dueSince === 0) continue;
      wishes += waiter.count;
      if (asking.length > 0 && wishes > mostWishes) break;
      asking.push(waiter);
    }
    return asking;
  }

  async #round(due: readonly Waiter[]): Promise<void> {
    const started = this.#moment;
    for (const waiter of due) waiter.dueSince = 0;
    try {
      const asking = await this.#dismissQueueless(due);
      if (asking.length === 0) return;
      const { owners, wishes } = this.#wish(asking);
      this.#polls++;
      const served = await this.#serve(owners, await this.#options.take(wishes));
      this.#settleDown(asking, served, started);
    } catch (error) {
      for (const waiter of due) this.#fail(waiter, error);
    }
  }

  /** Those whose queue is gone hear so; of the others' queues we know what they are like. */
  async #dismissQueueless(due: readonly Waiter[]): Promise<Waiter[]> {
    const unknown = new Set(due.map(({ queueId }) => queueId).filter((id) => !this.#kinds.has(id)));
    const gone = new Set<number>();
    const look = async (id: number) => {
      const kind = await this.#options.queue(id);
      if (kind === null) gone.add(id);
      else this.#kinds.set(id, kind);
    };
    await Promise.all([...unknown].map(look));
    for (const waiter of due)
      if (gone.has(waiter.queueId)) this.#fail(waiter, new MillraceError("QUEUE_NOT_FOUND"));
    return due.filter(({ queueId }) => !gone.has(queueId));
  }

  #wish(asking: readonly Waiter[]): { owners: Map<string, Waiter>; wishes: ItemWish[] } {
    const owners = new Map<string, Waiter>();
    const wishes: ItemWish[] = [];
    for (const waiter of asking) {
      const { queueId, tenant, robot, holder, leaseMs } = waiter;
      const limited = this.#kinds.get(queueId)?.limited ?? false;
      for (let i = 0; i < waiter.count; i++) {
        const claimId = randomUUID();
        owners.set(claimId, waiter);
        wishes.push({ queueId, tenant, robot, holder, leaseMs, limited, claimId });
      }
    }
    return { owners, wishes };
  }

  async #serve(
    owners: ReadonlyMap<string, Waiter>,
    taken: readonly LeasedItem[],
  ): Promise<ReadonlyMap<Waiter, LeasedItem[]>> {
    const byWaiter = new Map<Waiter, LeasedItem[]>();
    for (const item of taken) {
      const waiter = owners.get(item.token.claimId);
      if (waiter !== undefined) byWaiter.set(waiter, [...(byWaiter.get(waiter) ?? []), item]);
    }
    const handing = [...byWaiter].map(([waiter, items]) => this.#hand(waiter, items));
    const lost = (await Promise.all(handing)).flat();
    // Who asked has gone, or may not have them any more: nobody will ever hold these.
    if (lost.length > 0) await this.#options.release(lost);
    return byWaiter;
  }

  /** What could not be handed over. */
  async #hand(waiter: Waiter, items: LeasedItem[]): Promise<ItemHold[]> {
    const refusal = await this.#refusalOf(waiter);
    if (refusal !== null) this.#fail(waiter, refusal);
    else if (this.#waiters.has(waiter)) {
      this.#end(waiter, items);
      return [];
    }
    return items.map(({ id, token }) => ({ id, token, holder: waiter.holder }));
  }

  /** null: whoever waited may have what came. */
  async #refusalOf({ since, isAllowed }: Waiter): Promise<unknown> {
    if (this.#options.clock.monotonic() - since <= allowedForMs) return null;
    try {
      return (await isAllowed()) ? null : new MillraceError("UNAUTHENTICATED");
    } catch (error) {
      return error;
    }
  }

  /**
   * Where somebody went without, the queue is empty: nobody else who was due before need ask. Where all
   * were served there may be more.
   */
  #settleDown(
    asking: readonly Waiter[],
    served: ReadonlyMap<Waiter, LeasedItem[]>,
    started: number,
  ): void {
    const isEmpty = new Map<string, boolean>();
    for (const waiter of asking) {
      const isHungry = (served.get(waiter)?.length ?? 0) < waiter.count;
      isEmpty.set(groupOf(waiter), isHungry || isEmpty.get(groupOf(waiter)) === true);
    }
    const asked = new Set(asking);
    for (const waiter of this.#waiters) {
      if (isEmpty.get(groupOf(waiter)) === true && waiter.dueSince <= started) waiter.dueSince = 0;
      if (waiter.dueSince === 0 && (asked.has(waiter) || isEmpty.has(groupOf(waiter))))
        this.#waitOn(waiter);
    }
  }

  #waitOn(waiter: Waiter): void {
    const leftMs = waiter.until - this.#options.clock.monotonic();
    if (leftMs <= 0) this.#end(waiter, []);
    else waiter.timer ??= setTimeout(() => this.#end(waiter, []), leftMs);
  }

  #end(waiter: Waiter, items: LeasedItem[]): void {
    if (this.#forget(waiter)) waiter.resolve(items);
  }

  #fail(waiter: Waiter, error: unknown): void {
    if (this.#forget(waiter)) waiter.reject(error);
  }

  #forget(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false;
    if (waiter.timer !== null) clearTimeout(waiter.timer);
    if (this.#waiters.size === 0 && this.#tick !== null) {
      clearInterval(this.#tick);
      this.#tick = null;
    }
    return true;
  }
}
