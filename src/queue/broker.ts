// Hints when Redis can serve, nothing when it cannot: nobody here waits for Redis longer than a short
// deadline, and nobody fails because of it. See docs/design/broker.md.

import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { BrokerShard, type ShardOptions, type WeightRange } from "./broker-shard.ts";
import type { Hint } from "./window.ts";

export interface BrokerOptions {
  /** Highest priority first. */
  readonly shards: readonly ShardOptions[];
  /** What is ready in the store, in claim order, from these places on. */
  readonly ready: (
    queueId: number,
    limit: number,
    from: readonly StartingPlace[],
    weights: WeightRange,
  ) => Promise<readonly Hint[]>;
  readonly clock: Clock;
  readonly events: Events;
}

/** Up to where a worker has claimed: there is mostly no need to look before it. */
export interface StartingPlace {
  readonly queueId: number;
  readonly weight: number;
  readonly afterSeq: number;
}

const refillSize = 5_000;
const lowMark = 1_000;
const fromHeadEveryMs = 1_000;

export class Broker {
  readonly #options: BrokerOptions;
  readonly #listeners = new Set<(queueId: number) => void>();
  readonly #shards: readonly BrokerShard[];
  readonly #listedFromHeadAt = new Map<BrokerShard, Map<number, number>>();

  constructor(options: BrokerOptions) {
    this.#options = options;
    const onPut = (queueId: number) => {
      for (const listener of this.#listeners) listener(queueId);
    };
    this.#shards = options.shards.map((shard) => new BrokerShard(shard, { ...options, onPut }));
  }

  get canPut(): boolean {
    return this.#shards.some((shard) => shard.serves("put"));
  }

  get canTake(): boolean {
    return this.#shards.some((shard) => shard.serves("take"));
  }

  onPut(listener: (queueId: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The hints that could not be put: somebody must tell the workers in another way. */
  async put(hints: readonly Hint[]): Promise<readonly Hint[]> {
    const left: Hint[] = [];
    for (const shard of this.#shards) {
      const own = hints.filter((hint) => shard.keeps(hint));
      if (own.length > 0) left.push(...((await shard.try("put", (w) => w.put(own))) ?? own));
    }
    if (left.length > 0) this.#options.events.emit("hints.refused", { hints: left.length });
    return left;
  }

  /** How each Redis is; its memory is null while it does not answer. */
  health(): Promise<{ name: string; serves: boolean; memoryBytes: number | null }[]> {
    return Promise.all(
      this.#shards.map(async (shard) => {
        const memoryBytes = await shard.try("take", (window) => window.memory());
        const serves = memoryBytes !== null && shard.serves("put");
        return { name: shard.name, serves, memoryBytes };
      }),
    );
  }

  /** Up to `most`, the highest priority first. An empty answer may also mean that Redis is gone. */
  async take(
    queueIds: readonly number[],
    most: number,
    from: readonly StartingPlace[],
  ): Promise<Hint[]> {
    const taken: Hint[] = [];
    for (const shard of this.#shards) {
      const left = most - taken.length;
      if (left <= 0) break;
      const answer = await shard.try("take", (window) => window.take(queueIds, left));
      taken.push(...(answer?.hints ?? []));
      // Not waited for: its announcement wakes whoever is idle.
      void this.#refill(shard, answer?.refill ?? [], from);
    }
    return taken;
  }

  /** Refills the windows of these queues that run low; says how many hints were put. */
  async refillLow(queueIds: readonly number[]): Promise<number> {
    let put = 0;
    for (const shard of this.#shards) {
      for (const queueId of queueIds) {
        const hints = await shard.try("take", (window) => window.count(queueId));
        if (hints !== null && hints < lowMark) put += await this.#refill(shard, [queueId], []);
      }
    }
    return put;
  }

  renew(epoch: string): void {
    for (const shard of this.#shards) shard.renew(epoch);
  }

  async close(): Promise<void> {
    await Promise.all(this.#shards.map((shard) => shard.close()));
  }

  async #refill(
    shard: BrokerShard,
    queueIds: readonly number[],
    from: readonly StartingPlace[],
  ): Promise<number> {
    const { ready, events } = this.#options;
    let put = 0;
    for (const queueId of queueIds) {
      try {
        const places = this.#isTimeForHead(shard, queueId) ? [] : from;
        const hints = await ready(queueId, refillSize, places, shard.weights);
        const refilled = await shard.try("put", async (window) => {
          await window.refill(queueId, hints, hints.length >= refillSize);
          return true;
        });
        if (refilled === null || hints.length === 0) continue;
        put += hints.length;
        events.emit("window.refilled", { queueId, hints: hints.length });
      } catch (error) {
        events.emit("service.failed", { service: "broker", error });
      }
    }
    return put;
  }

  /** Before the places of a worker there may be what was never hinted, and weights it has not seen. */
  #isTimeForHead(shard: BrokerShard, queueId: number): boolean {
    const now = this.#options.clock.monotonic();
    const listedAt = this.#listedFromHeadAt.get(shard) ?? new Map<number, number>();
    this.#listedFromHeadAt.set(shard, listedAt);
    if (now - (listedAt.get(queueId) ?? Number.NEGATIVE_INFINITY) < fromHeadEveryMs) return false;
    listedAt.set(queueId, now);
    return true;
  }
}
