// One tenant sends ten times what it may, another a little; both through one process.

import { setTimeout as delay } from "node:timers/promises";
import { defineJob, Millrace, MillraceError } from "../../src/index.ts";
import { createDatabase } from "./postgres.ts";
import { until } from "./until.ts";

export interface OverloadOptions {
  readonly seconds: number;
  readonly limitPerSecond: number;
  readonly times: number;
}

const quantile = (values: readonly number[], q: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(100 * (sorted[Math.ceil(q * sorted.length) - 1] ?? 0)) / 100;
};

export async function overload({ seconds, limitPerSecond, times }: OverloadOptions) {
  const database = await createDatabase();
  const millrace = await Millrace.connect({ databaseUrl: database.url, logLevel: "silent" });
  try {
    const rate = { limit: limitPerSecond, windowMs: 1_000 };
    await millrace.configureQueue("door", { tenantRateLimit: rate });
    const finished = new Map<number, () => void>();
    let completed = 0;
    const job = defineJob({
      type: "door",
      queue: "door",
      run({ payload }) {
        const { quiet } = payload as { quiet?: number };
        if (quiet === undefined) completed++;
        else finished.get(quiet)?.();
      },
    });
    await millrace.work([job], { concurrency: 20 });
    let probes = 0;
    let quietRefused = 0;
    /** From the call to the handler, one job of the quiet tenant after the other. */
    const probe = async (ms: number) => {
      const latencies: number[] = [];
      const until = performance.now() + ms;
      while (performance.now() < until) {
        const quiet = ++probes;
        const done = new Promise<void>((resolve) => finished.set(quiet, resolve));
        const started = performance.now();
        const sent = millrace.enqueue(job, { quiet }, { tenant: "quiet" }).catch(() => {
          quietRefused++;
          finished.get(quiet)?.();
        });
        await Promise.all([sent, done]);
        latencies.push(performance.now() - started);
        finished.delete(quiet);
        await delay(20);
      }
      return latencies;
    };
    await probe(2_000);
    const before = await probe(10_000);
    globalThis.gc?.();
    const heap = process.memoryUsage().heapUsed;
    const refusals: number[] = [];
    let accepted = 0;
    const send = async (ms: number) => {
      const started = performance.now();
      const until = started + ms;
      const calls = new Set<Promise<void>>();
      let sent = 0;
      while (performance.now() < until) {
        const due = ((performance.now() - started) / 1_000) * limitPerSecond * times;
        for (; sent < due; sent++) {
          const at = performance.now();
          const call = millrace
            .enqueue(job, {}, { tenant: "loud" })
            .then(
              () => {
                accepted++;
              },
              (error) => {
                if (!(error instanceof MillraceError) || error.code !== "RATE_LIMITED") throw error;
                refusals.push(performance.now() - at);
              },
            )
            .finally(() => calls.delete(call));
          calls.add(call);
        }
        await delay(5);
      }
      await Promise.all(calls);
    };
    const [during] = await Promise.all([probe(seconds * 1_000), send(seconds * 1_000)]);
    await until("what was accepted completes", () => completed === accepted, 120_000);
    globalThis.gc?.();
    const heapGrowthMb = Math.round((process.memoryUsage().heapUsed - heap) / 1_048_576);
    return {
      ...{ accepted, completed, refused: refusals.length, quietRefused, heapGrowthMb },
      refusalP99Ms: quantile(refusals, 0.99),
      quietP50Ms: [quantile(before, 0.5), quantile(during, 0.5)],
      quietP99Ms: [quantile(before, 0.99), quantile(during, 0.99)],
    };
  } finally {
    await millrace.stop();
    await database.drop();
  }
}
