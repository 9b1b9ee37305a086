// Waits for the queue's signal on a connection of its own, since a blocked connection serves nobody else.
// A signal is taken by one process only; who does not need it any more passes it on.

import { setTimeout as delay } from "node:timers/promises";
import type { RedisConnection } from "./connection.ts";

export interface ListenerOptions {
  readonly open: () => Promise<RedisConnection>;
  readonly wakeKey: string;
  /** A signal, or so long without one that it is time to look. */
  readonly onWake: () => void;
  readonly isWanted: () => boolean;
  readonly passOn: () => void;
}

/** A signal that died with its taker costs the others this long at most. */
const longestWaitSeconds = 5;
const pauseMs = 250;

export class Listener {
  readonly #options: ListenerOptions;
  #connection: Promise<RedisConnection> | undefined;
  #listening = false;
  #closed = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** From now on there is one wait under way, until a signal comes that nobody wants. */
  listen(): void {
    if (this.#listening || this.#closed) return;
    this.#listening = true;
    void this.#wait();
  }

  async #wait(): Promise<void> {
    const { wakeKey, onWake, isWanted, passOn } = this.#options;
    const answer = await this.#block(wakeKey).catch(() => this.#pause());
    this.#listening = false;
    if (isWanted()) onWake();
    else if (answer !== null) passOn();
  }

  /** Who cannot block must look, but not all the time. */
  async #pause(): Promise<null> {
    if (!this.#closed) await delay(pauseMs, null, { ref: false });
    return null;
  }

  async #block(wakeKey: string): Promise<unknown> {
    this.#connection ??= this.#open();
    const connection = await this.#connection;
    const args = ["BLPOP", wakeKey, String(longestWaitSeconds)];
    return connection.send(wakeKey, args, longestWaitSeconds * 1_000);
  }

  async #open(): Promise<RedisConnection> {
    try {
      const connection = await this.#options.open();
      if (this.#closed) connection.close();
      return connection;
    } catch (error) {
      this.#connection = undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.#connection?.catch(() => undefined);
    connection?.close();
  }
}
