// One trial of brokered dispatch: a database, a Redis that holds nothing else, and what is hinted in it.

import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type ConnectOptions, defineJob, Millrace } from "../../src/index.ts";
import { RedisWindow } from "../../src/queue/redis/window.ts";
import type { Hint } from "../../src/queue/window.ts";
import { type RedisServer, type RedisServerOptions, startRedis } from "./redis-server.ts";
import { Trial } from "./trial.ts";
import { until } from "./until.ts";
import type { WorkerProcess } from "./worker-process.ts";

// Polls that never come: whatever is found was hinted, announced, or claimed directly beside hints.
const pollMs = 600_000;
const quick: ConnectOptions = { logLevel: "silent", pollMs, reclaimMs: 200, drainMs: 5_000 };

export interface BrokerTrialOptions extends RedisServerOptions {
  /** Of the PostgreSQL server; without it, the run's shared one. */
  readonly serverUrl?: () => string;
}

export class BrokerTrial {
  readonly #ends: (() => Promise<unknown>)[] = [];
  #redis: RedisServer | undefined;
  #wake = () => {};
  #trial: Trial | undefined;

  static use(options: BrokerTrialOptions = {}): BrokerTrial {
    const trial = new BrokerTrial();
    beforeAll(async () => {
      trial.#redis = await startRedis(options);
    });
    beforeEach(async () => {
      if (!(await trial.redis.isUp())) await trial.redis.restart();
      await trial.redis.command("CONFIG", "SET", "maxmemory", "0");
      await trial.redis.command("FLUSHALL");
      trial.#trial = await Trial.create(options.serverUrl?.());
    });
    afterEach(async () => {
      trial.#wake();
      await Promise.all(trial.#ends.splice(0).map((end) => end()));
      await trial.#trial?.close();
    });
    afterAll(() => trial.#redis?.drop());
    return trial;
  }

  pauseRedis(): void {
    this.redis.pause();
    this.#wake = () => {
      this.#wake = () => {};
      this.redis.resume();
    };
  }

  resumeRedis(): void {
    this.#wake();
  }

  get redis(): RedisServer {
    if (this.#redis === undefined) throw new Error("Redis is not up yet");
    return this.#redis;
  }

  get trial(): Trial {
    if (this.#trial === undefined) throw new Error("there is no trial yet");
    return this.#trial;
  }

  /** A Millrace of this process that dispatches over Redis, from now on. */
  async connect(more: ConnectOptions = {}): Promise<Millrace> {
    const millrace = await this.connectOnly(more);
    await millrace.events.once("dispatch.brokered");
    return millrace;
  }

  /** Whatever becomes of Redis. */
  async connectOnly(more: ConnectOptions = {}): Promise<Millrace> {
    const options = { databaseUrl: this.trial.url, redisUrl: this.redis.url, ...quick, ...more };
    const millrace = await Millrace.connect(options);
    this.endsWith(() => millrace.stop());
    return millrace;
  }

  /** A worker process that dispatches over Redis. */
  async start(options: Parameters<Trial["start"]>[0] = {}): Promise<WorkerProcess> {
    const connect = { redisUrl: this.redis.url, pollMs, ...options.connect };
    const process = await this.trial.start({ ...options, connect });
    await process.writes("dispatch.brokered");
    return process;
  }

  endsWith(end: () => Promise<unknown>): void {
    this.#ends.push(end);
  }

  /** The queue's window, in hand of the test; until somebody refills it, it takes what is put. */
  async openWindow(queue = "default"): Promise<QueueWindow> {
    const { millrace } = this.trial;
    await millrace.configureQueue(queue, {});
    const found = (await millrace.queues()).find(({ name }) => name === queue);
    const window = await RedisWindow.open({
      ...(await millrace.store.identity()),
      url: this.redis.url,
      answerTimeoutMs: 2_000,
      connectTimeoutMs: 2_000,
      monotonic: () => performance.now(),
    });
    this.endsWith(() => window.close());
    const queueId = found?.id ?? 0;
    await window.refill(queueId, [], false);
    return new QueueWindow(window, this.redis, queueId);
  }
}

export class QueueWindow {
  readonly window: RedisWindow;
  readonly queueId: number;
  readonly #redis: RedisServer;

  constructor(window: RedisWindow, redis: RedisServer, queueId: number) {
    this.window = window;
    this.queueId = queueId;
    this.#redis = redis;
  }

  async size(): Promise<number> {
    return Number(await this.#redis.command("ZCARD", await this.#key("window")).catch(() => -1));
  }

  async epoch(): Promise<string> {
    return String(await this.#redis.command("GET", await this.#key("epoch")).catch(() => ""));
  }

  /** Waits until the window holds so many hints. */
  async holds(count: number): Promise<void> {
    await until(`the window holds ${count}`, async () => (await this.size()) === count);
  }

  /** What it holds; it holds the same afterwards. */
  async hints(): Promise<readonly Hint[]> {
    const { hints } = await this.window.take([this.queueId], 10_000);
    await this.window.put(hints);
    return hints;
  }

  async #key(part: string): Promise<string> {
    const keys = (await this.#redis.command("KEYS", `*.${this.queueId}}:${part}`)) as string[];
    return keys[0] ?? "none";
  }
}

/** A definition that notes every run, by the payload. */
export function recorded(type = "recorded", queue = "default") {
  const runs: unknown[] = [];
  const run = ({ payload }: { payload: unknown }) => {
    runs.push(payload);
    return payload;
  };
  return { runs, job: defineJob({ type, queue, run }) };
}

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** How it dispatches, whenever that changes. */
export function dispatchOf({ events }: Millrace, redis = "redis"): string[] {
  const words: string[] = [];
  for (const word of ["direct", "brokered"] as const)
    events.on(`dispatch.${word}`, (event) => event.redis === redis && words.push(word));
  return words;
}
