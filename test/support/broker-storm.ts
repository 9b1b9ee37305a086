// Jobs through brokered Millrace and several worker processes while Redis is broken again and again.

import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { Millrace } from "../../src/index.ts";
import { findViolations } from "./checker.ts";
import { count } from "./ledger.ts";
import { randomOf } from "./random.ts";
import { RedisNemesis } from "./redis-nemesis.ts";
import { startRedis } from "./redis-server.ts";
import { type ChaosPayload, chaosJob, Trial } from "./trial.ts";

export interface StormOptions {
  readonly seed: number;
  readonly jobs: number;
  readonly processes: number;
  /** How often every fault happens at least. */
  readonly rounds: number;
  /** For what is left when Redis is well again. */
  readonly drainMs: number;
}

// No lease lapses because two cores were busy: what ran twice ran twice because of Redis.
const lease = { leaseMs: 30_000, renewMs: 5_000 };

export async function outlastsStorm(options: StormOptions): Promise<void> {
  const { seed, processes, drainMs } = options;
  const redis = await startRedis({ durable: true });
  const trial = await Trial.create();
  const connect = { redisUrl: redis.url, ...lease };
  const producer = await Millrace.connect({
    databaseUrl: trial.url,
    logLevel: "silent",
    ...connect,
  });
  const nemesis = new RedisNemesis(redis, randomOf(seed, "nemesis"));
  try {
    for (let i = 0; i < processes; i++) await trial.start({ connect, work: { concurrency: 10 } });
    nemesis.start();
    const acknowledged = await produce(producer, nemesis, options);
    await nemesis.stop();
    await trial.drained(drainMs);
    const ledger = trial.ledger();
    const [direct, brokered] = [
      count(ledger, "dispatch.direct"),
      count(ledger, "dispatch.brokered"),
    ];
    console.log(
      JSON.stringify({ seed, jobs: acknowledged.length, nemesis: nemesis.done, direct, brokered }),
    );
    expect(await findViolations(trial.db, acknowledged, ledger)).toEqual([]);
    expect(await trial.count("completed")).toBe(acknowledged.length);
    expect(count(ledger, "start")).toBe(acknowledged.length);
    // A storm that nobody felt has tested nothing.
    expect(direct).toBeGreaterThan(0);
    expect(brokered).toBeGreaterThan(processes);
  } finally {
    await nemesis.stop();
    await producer.stop();
    await trial.close();
    await redis.drop();
  }
}

async function produce(producer: Millrace, nemesis: RedisNemesis, options: StormOptions) {
  const random = randomOf(options.seed, "producer");
  const acknowledged: string[] = [];
  while (acknowledged.length < options.jobs || nemesis.rounds < options.rounds) {
    const batch = acknowledged.length < options.jobs ? Math.ceil(options.jobs / 200) : 1;
    const payloads = Array.from({ length: batch }, () => payload(random));
    const priority = () => (random() < 0.2 ? "high" : random() < 0.5 ? "normal" : "low");
    const sent =
      random() < 0.5
        ? [producer.enqueueMany(chaosJob, payloads, { priority: priority() })]
        : payloads.map(async (one) => [
            await producer.enqueue(chaosJob, one, { priority: priority() }),
          ]);
    acknowledged.push(...(await Promise.all(sent)).flat().map(({ id }) => id));
    await delay(30 * random());
  }
  return acknowledged;
}

const payload = (random: () => number): ChaosPayload =>
  random() < 0.7 ? { kind: "quick" } : { kind: "long", ms: Math.round(20 * random()) };
