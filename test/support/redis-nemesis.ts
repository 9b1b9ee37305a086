// Breaks Redis in every way, in random order, round after round, until it is told to stop.

import { setTimeout as delay } from "node:timers/promises";
import type { RedisServer } from "./redis-server.ts";

export class RedisNemesis {
  readonly done: Record<string, number> = {};
  /** How often every fault has happened. */
  rounds = 0;
  readonly #server: RedisServer;
  readonly #random: () => number;
  #stopped = false;
  #loop: Promise<void> = Promise.resolve();

  readonly #faults: Record<string, () => Promise<void>> = {
    kill: async () => {
      await this.#server.kill();
      await this.#aWhile();
      await this.#server.start();
    },
    restart: () => this.#server.restart(),
    flush: async () => void (await this.#server.command("FLUSHALL")),
    pause: async () => {
      this.#server.pause();
      await this.#aWhile();
      this.#server.resume();
    },
    fill: async () => {
      await this.#server.command("CONFIG", "SET", "maxmemory", "1");
      await this.#aWhile();
      await this.#server.command("CONFIG", "SET", "maxmemory", "0");
    },
  };

  constructor(server: RedisServer, random: () => number) {
    this.#server = server;
    this.#random = random;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Ends when Redis serves again. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  async #run(): Promise<void> {
    for (; !this.#stopped; this.rounds++) {
      for (const [name, fault] of this.#shuffled()) {
        await delay(100 + 400 * this.#random());
        await fault();
        this.done[name] = (this.done[name] ?? 0) + 1;
      }
    }
  }

  #shuffled(): [string, () => Promise<void>][] {
    const keyed = Object.entries(this.#faults).map((fault) => ({ fault, key: this.#random() }));
    return keyed.sort((a, b) => a.key - b.key).map(({ fault }) => fault);
  }

  #aWhile(): Promise<void> {
    return delay(200 + 1_300 * this.#random());
  }
}
