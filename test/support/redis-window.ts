// Windows of hints for tests, in a namespace of each test's own.

import { randomUUID } from "node:crypto";
import { RedisWindow } from "../../src/queue/redis/window.ts";
import type { Hint } from "../../src/queue/window.ts";
import type { RedisServer } from "./redis-server.ts";
import { until } from "./until.ts";

export interface RedisUnderTest {
  readonly url: string | readonly string[];
  readonly servers: readonly RedisServer[];
}

export class WindowStage {
  readonly redis: RedisUnderTest;
  readonly #namespace = randomUUID();
  readonly #opened: RedisWindow[] = [];

  constructor(redis: RedisUnderTest) {
    this.redis = redis;
  }

  async open(epoch = "now"): Promise<RedisWindow> {
    const window = await RedisWindow.open({
      url: this.redis.url,
      epoch,
      namespace: this.#namespace,
      answerTimeoutMs: 2_000,
      connectTimeoutMs: 2_000,
      monotonic: () => performance.now(),
    });
    this.#opened.push(window);
    return window;
  }

  /** One that was filled with these, which is all there is, and takes more. */
  async opened(hints: readonly Hint[] = []): Promise<RedisWindow> {
    const window = await this.open();
    // The nodes of a cluster that was just restarted have to find each other first.
    await until("the server serves", () =>
      window.refill(1, hints, false).then(
        () => true,
        () => false,
      ),
    );
    return window;
  }

  async everyServer(act: (server: RedisServer) => Promise<unknown>): Promise<void> {
    await Promise.all(this.redis.servers.map(act));
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((window) => window.close()));
  }
}

export const hint = (seq: number, weight = 0, queueId = 1): Hint => ({
  queueId,
  weight,
  seq,
  tid: `(${seq % 1_000},7)`,
});

export const hints = (from: number, to: number, weight = 0): Hint[] =>
  Array.from({ length: to - from + 1 }, (_, i) => hint(from + i, weight));

export async function takeSeqs(window: RedisWindow, most = 1_000): Promise<number[]> {
  return (await window.take([1], most)).hints.map(({ seq }) => seq);
}

/** Everything, in the order of taking. */
export async function drain(window: RedisWindow): Promise<number[]> {
  const all: number[] = [];
  for (let some = await takeSeqs(window); some.length > 0; some = await takeSeqs(window))
    all.push(...some);
  return all;
}

/** Until this caller is told to refill; somebody else may have been told just before. */
export async function toldToRefill(window: RedisWindow): Promise<void> {
  await until("it is told to refill", async () => {
    const { refill, hints: taken } = await window.take([1], 1);
    if (taken.length > 0) throw new Error("there was a hint left");
    return refill.includes(1);
  });
}
