// A Redis for one test file, and queues on it that are closed after each test.

import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { RedisQueue, type RedisQueueOptions } from "../../src/queue/redis-queue.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";
import { TakerProcess } from "./redis-taker.ts";
import { until } from "./until.ts";

export const heartbeatMs = 200;

export class RedisTrial {
  /** Of the test's own queue. */
  name = "";
  readonly #opened: { end(): Promise<void> }[] = [];
  #server: RedisServer | undefined;

  static use(): RedisTrial {
    const trial = new RedisTrial();
    beforeAll(async () => {
      trial.#server = await startRedis({ durable: true });
    });
    beforeEach(() => {
      trial.name = randomUUID();
    });
    afterEach(async () => {
      for (const one of trial.#opened.splice(0)) await one.end();
    });
    afterAll(() => trial.#server?.drop());
    return trial;
  }

  get server(): RedisServer {
    if (this.#server === undefined) throw new Error("the server is not up yet");
    return this.#server;
  }

  async open(more: Partial<RedisQueueOptions> = {}): Promise<RedisQueue<string>> {
    const queue = await RedisQueue.connect<string>(this.#options(more));
    this.#opened.push({ end: () => queue.close() });
    return queue;
  }

  openProcess(): TakerProcess {
    const taker = new TakerProcess(this.#options({}));
    this.#opened.push(taker);
    return taker;
  }

  #options(more: Partial<RedisQueueOptions>): RedisQueueOptions {
    const { url } = this.server;
    return { url, name: this.name, heartbeatMs, answerTimeoutMs: 1_000, ...more };
  }

  async worksAgain(queue: RedisQueue<string>): Promise<void> {
    await until("the queue works again", () =>
      queue.ping(500).then(
        () => true,
        () => false,
      ),
    );
  }

  /** Until so many connections block in a wait for a signal. */
  async blocking(count: number): Promise<void> {
    await until(`${count} block`, async () => {
      const info = String(await this.server.command("INFO", "clients"));
      return Number(/blocked_clients:(\d+)/.exec(info)?.[1]) === count;
    });
  }

  /** How often the server was sent a script since forgetCalls(). */
  async scriptCalls(): Promise<number> {
    const info = String(await this.server.command("INFO", "commandstats"));
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
  }

  async forgetCalls(): Promise<void> {
    await this.server.command("CONFIG", "RESETSTAT");
  }
}
