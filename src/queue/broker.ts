// Hints when Redis can serve, nothing when it cannot: nobody here waits for Redis longer than a short
// deadline, and nobody fails because of it. See docs/design/broker.md.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Hint, Window } from "./window.ts";

export interface BrokerOptions {
  /** Opens the windows, highest priority first; asked again until it succeeds. */
  readonly open: () => Promise<readonly Shard[]>;
  /** What is ready in the store, in claim order, from these places on. */
  readonly ready: (
    queueId: number,
    limit: number,
    from: readonly StartingPlace[],
  ) => Promise<readonly Hint[]>;
  readonly clock: Clock;
  readonly events: Events;
}

/** Up to where a worker has claimed: there is no need to look before it. */
export interface StartingPlace {
  readonly queueId: number;
  readonly weight: number;
  readonly afterSeq: number;
}

export interface Shard {
  readonly name: string;
  readonly window: Window;
  readonly keeps: (weight: number) => boolean;
}

const refillSize = 5_000;
const refillEveryMs = 100;
const lowMark = 1_000;
const tryAgainMs = 500;

export class Broker {
  readonly #options: BrokerOptions;
  readonly #listeners = new Set<(queueId: number) => void>();
  /** When a shard that has failed is asked again. */
  readonly #askAgainAt = new Map<Shard, number>();
  readonly #refillAskedAt = new Map<string, number>();
  #shards: readonly Shard[] = [];
  #state: "opening" | "open" | "closed" = "opening";
  readonly #closing = new AbortController();
  readonly #opened: Promise<void>;

  constructor(options: BrokerOptions) {
    this.#options = options;
    this.#opened = this.#open();
  }

  /** Some Redis serves hints at present. */
  get isActive(): boolean {
    return this.#shards.some((shard) => this.#serves(shard));
  }

  onPut(listener: (queueId: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The hints that could not be put: somebody must tell the workers in another way. */
  async put(hints: readonly Hint[]): Promise<readonly Hint[]> {
    const left: Hint[] = [];
    for (const shard of this.#shards) {
      const own = this.#shards.length === 1 ? hints : hints.filter((h) => shard.keeps(h.weight));
      if (own.length === 0) continue;
      const back = this.#serves(shard) && (await this.#try(shard, () => shard.window.put(own)));
      left.push(...(back === false ? own : back));
    }
    return this.#shards.length === 0 ? hints : left;
  }

  /** Up to `most`, the highest priority first. An empty answer may also mean that Redis is gone. */
  async take(
    queueIds: readonly number[],
    most: number,
    from: readonly StartingPlace[],
  ): Promise<Hint[]> {
    const taken: Hint[] = [];
    for (const shard of this.#shards) {
      if (taken.length >= most) break;
      if (!this.#serves(shard)) continue;
      const hints = await this.#takeFrom(shard, queueIds, most - taken.length, from);
      for (const hint of hints) taken.push(hint);
    }
    return taken;
  }

  /** Refills the windows of these queues that run low; says how many hints were put. */
  async refillLow(queueIds: readonly number[]): Promise<number> {
    let put = 0;
    for (const shard of this.#shards) {
      for (const queueId of queueIds) {
        if (!this.#serves(shard)) break;
        const hints = await this.#try(shard, () => shard.window.count(queueId));
        if (hints !== false && hints < lowMark) put += await this.#refill(shard, [queueId], []);
      }
    }
    return put;
  }

  renew(epoch: string): void {
    for (const { window } of this.#shards) window.renew(epoch);
  }

  async close(): Promise<void> {
    this.#state = "closed";
    this.#closing.abort();
    await this.#opened;
    await Promise.all(this.#shards.map(({ window }) => window.close()));
  }

  async #takeFrom(
    shard: Shard,
    queueIds: readonly number[],
    most: number,
    from: readonly StartingPlace[],
  ): Promise<Hint[]> {
    const taken = await this.#try(shard, () => shard.window.take(queueIds, most));
    if (taken === false) return [];
    if (taken.kind === "hints" && taken.hints.length > 0) return [...taken.hints];
    const empty = taken.kind === "foreign" ? taken.queueIds : queueIds;
    // Not waited for: its announcement wakes whoever is idle.
    void this.#refill(shard, empty, from);
    return [];
  }

  async #refill(
    shard: Shard,
    queueIds: readonly number[],
    from: readonly StartingPlace[],
  ): Promise<number> {
    const { ready, events } = this.#options;
    let put = 0;
    for (const queueId of queueIds) {
      if (!this.#refillIsDue(shard, queueId)) continue;
      const mayRefill = await this.#try(shard, () => shard.window.mayRefill(queueId));
      if (mayRefill !== true) continue;
      try {
        const hints = (await ready(queueId, refillSize, from)).filter((h) => shard.keeps(h.weight));
        const refilled = await this.#try(shard, () => shard.window.refill(queueId, hints));
        if (refilled === false || hints.length === 0) continue;
        put += hints.length;
        events.emit("window.refilled", { queueId, hints: hints.length });
      } catch (error) {
        events.emit("service.failed", { service: "broker", error });
      }
    }
    return put;
  }

  /** Whoever was woken for nothing need not ask every time. */
  #refillIsDue(shard: Shard, queueId: number): boolean {
    const key = `${shard.name} ${queueId}`;
    const now = this.#options.clock.monotonic();
    if (now - (this.#refillAskedAt.get(key) ?? Number.NEGATIVE_INFINITY) < refillEveryMs)
      return false;
    this.#refillAskedAt.set(key, now);
    return true;
  }

  #serves(shard: Shard): boolean {
    const at = this.#askAgainAt.get(shard);
    return at === undefined || (shard.window.isReady && this.#options.clock.monotonic() >= at);
  }

  /** False when Redis did not do it; then it is left alone for a while. */
  async #try<T>(shard: Shard, act: () => Promise<T>): Promise<T | false> {
    const { clock, events } = this.#options;
    try {
      const done = await act();
      if (this.#askAgainAt.delete(shard)) events.emit("dispatch.brokered", { redis: shard.name });
      return done;
    } catch (error) {
      if (this.#state === "closed") return false;
      if (!this.#askAgainAt.has(shard))
        events.emit("dispatch.direct", { redis: shard.name, error });
      this.#askAgainAt.set(shard, clock.monotonic() + tryAgainMs);
      return false;
    }
  }

  async #open(): Promise<void> {
    const { open, clock, events } = this.#options;
    for (let tries = 0; this.#state === "opening"; tries++) {
      try {
        const shards = await open();
        for (const shard of shards) this.#attach(shard);
        this.#shards = shards;
        this.#state = "open";
        for (const { name } of shards) events.emit("dispatch.brokered", { redis: name });
      } catch (error) {
        if (tries === 0) events.emit("dispatch.direct", { redis: "redis", error });
        if (error instanceof MillraceError && error.code === "REDIS_CLIENT_MISSING") return;
        await clock.sleep(tryAgainMs, this.#closing.signal);
      }
    }
  }

  #attach({ window }: Shard): void {
    const tell = (queueId: number) => {
      for (const listener of this.#listeners) listener(queueId);
    };
    window.onPut(tell);
  }
}
