// One Redis of a broker: asked for until it can be opened, and left alone for a while when it fails.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Window } from "./window.ts";

/** Both ends are included. */
export interface WeightRange {
  readonly from: number;
  readonly to: number;
}

export interface ShardOptions {
  readonly name: string;
  readonly weights: WeightRange;
  readonly open: () => Promise<Window>;
}

interface Surroundings {
  readonly clock: Clock;
  readonly events: Events;
  readonly onPut: (queueId: number) => void;
}

/** A full Redis gives hints and takes none, so that the one says nothing about the other. */
type Deed = "put" | "take";

const tryAgainMs = 500;

export class BrokerShard {
  readonly weights: WeightRange;
  readonly #options: ShardOptions & Surroundings;
  readonly #tryAgainAt = new Map<Deed, number>();
  readonly #closing = new AbortController();
  #window: Window | null = null;
  #epoch: string | null = null;

  constructor(options: ShardOptions, surroundings: Surroundings) {
    this.weights = options.weights;
    this.#options = { ...options, ...surroundings };
    void this.#open();
  }

  get name(): string {
    return this.#options.name;
  }

  keeps({ weight }: { readonly weight: number }): boolean {
    return weight >= this.weights.from && weight <= this.weights.to;
  }

  serves(deed: Deed): boolean {
    if (this.#window === null) return false;
    const at = this.#tryAgainAt.get(deed);
    return at === undefined || (this.#window.isReady && this.#options.clock.monotonic() >= at);
  }

  /** Null when Redis did not do it. */
  async try<T>(deed: Deed, act: (window: Window) => Promise<T>): Promise<T | null> {
    const { name, clock, events } = this.#options;
    if (this.#window === null || !this.serves(deed)) return null;
    try {
      const done = await act(this.#window);
      if (this.#tryAgainAt.delete(deed) && this.#tryAgainAt.size === 0)
        events.emit("dispatch.brokered", { redis: name });
      return done;
    } catch (error) {
      if (this.#closing.signal.aborted) return null;
      if (this.#tryAgainAt.size === 0) events.emit("dispatch.direct", { redis: name, error });
      this.#tryAgainAt.set(deed, clock.monotonic() + tryAgainMs);
      return null;
    }
  }

  renew(epoch: string): void {
    this.#epoch = epoch;
    this.#window?.renew(epoch);
  }

  /** Whatever is being opened at present is closed when it comes. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#window?.close();
  }

  async #open(): Promise<void> {
    const { name, open, clock, events, onPut } = this.#options;
    const { signal } = this.#closing;
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        const window = await open();
        if (signal.aborted) return await window.close();
        if (this.#epoch !== null) window.renew(this.#epoch);
        window.onPut(onPut);
        this.#window = window;
        return events.emit("dispatch.brokered", { redis: name });
      } catch (error) {
        if (signal.aborted) return;
        if (tries === 0) events.emit("dispatch.direct", { redis: name, error });
        if (error instanceof MillraceError && error.code === "REDIS_CLIENT_MISSING") return;
        await clock.sleep(tryAgainMs, signal);
      }
    }
  }
}
