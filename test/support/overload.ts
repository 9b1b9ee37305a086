// One tenant sends ten times what it may, from a process of its own, to a worker in another; a quiet one
// sends a job now and then from here, and waits until it runs.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { defineJob, Millrace } from "../../src/index.ts";
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

async function start(program: string, said: object): Promise<ChildProcess> {
  const file = fileURLToPath(new URL(`../processes/${program}`, import.meta.url));
  const child = fork(file, [JSON.stringify(said)], { execArgv: ["--expose-gc"] });
  await once(child, "message");
  return child;
}

/** From the call to the handler, one job after the other. */
class QuietTenant {
  readonly #millrace: Millrace;
  readonly #job = defineJob({ type: "door", queue: "door" });
  readonly #ran = new Map<number, () => void>();
  #probes = 0;
  refused = 0;

  constructor(millrace: Millrace, worker: ChildProcess) {
    this.#millrace = millrace;
    worker.on("message", ({ quiet }: { quiet?: number }) => this.#ran.get(quiet ?? 0)?.());
  }

  async sendUntil(isOver: () => boolean): Promise<number[]> {
    const latencies: number[] = [];
    while (!isOver()) {
      const quiet = ++this.#probes;
      const ran = new Promise<void>((resolve) => this.#ran.set(quiet, resolve));
      const started = performance.now();
      await this.#millrace.enqueue(this.#job, { quiet }, { tenant: "quiet" }).catch(() => {
        this.refused++;
        this.#ran.get(quiet)?.();
      });
      await ran;
      latencies.push(performance.now() - started);
      this.#ran.delete(quiet);
      await delay(20);
    }
    return latencies;
  }

  sendFor(ms: number): Promise<number[]> {
    const end = performance.now() + ms;
    return this.sendUntil(() => performance.now() >= end);
  }
}

async function countOf(worker: ChildProcess): Promise<{ completed: number; heap: number }> {
  worker.send("count");
  for (;;) {
    const [told] = await once(worker, "message");
    if (told.completed !== undefined) return told;
  }
}

export async function overload({ seconds, limitPerSecond, times }: OverloadOptions) {
  const database = await createDatabase();
  const { url } = database;
  const millrace = await Millrace.connect({ databaseUrl: url, logLevel: "silent" });
  const children: ChildProcess[] = [];
  try {
    const rate = { limit: limitPerSecond, windowMs: 1_000 };
    await millrace.configureQueue("door", { tenantRateLimit: rate });
    const worker = await start("overload-worker.mjs", { url });
    const said = { url, tenant: "loud", perSecond: limitPerSecond * times };
    const loud = await start("overload-producer.mjs", said);
    children.push(worker, loud);
    const quiet = new QuietTenant(millrace, worker);
    // Both have been there: the queue is a fair one before and after.
    await millrace.enqueue(defineJob({ type: "door", queue: "door" }), {}, { tenant: "loud" });
    await quiet.sendFor(2_000);
    const before = await quiet.sendFor(Math.min(10_000, seconds * 1_000));
    const { heap } = await countOf(worker);
    let told: Awaited<ReturnType<typeof once>> | null = null;
    const telling = once(loud, "message").then((message) => {
      told = message;
    });
    loud.send({ seconds });
    const during = await quiet.sendUntil(() => told !== null);
    await telling;
    const [sent] = told as unknown as [Record<string, number>];
    const accepted = (sent.accepted ?? 0) + 1;
    const after = await until(
      "what was accepted completes",
      async () => {
        const count = await countOf(worker);
        return count.completed >= accepted && count;
      },
      120_000,
    );
    const mb = (bytes = 0) => Math.round(bytes / 1_048_576);
    const p50 = [quantile(before, 0.5), quantile(during, 0.5)] as const;
    return {
      ...{ accepted, completed: after.completed, refused: sent.refused ?? 0 },
      quietRefused: quiet.refused,
      grewByMb: { producer: mb(sent.grewBy), worker: mb(after.heap - heap) },
      refusalMs: { p50: sent.p50Ms ?? 0, p99: sent.p99Ms ?? 0 },
      quietP50Ms: p50,
      quietP99Ms: [quantile(before, 0.99), quantile(during, 0.99)],
      quietRatio: Math.round((100 * p50[1]) / p50[0]) / 100,
    };
  } finally {
    for (const child of children) if (child.connected) child.send("stop");
    await millrace.stop();
    await until("the processes end", () => children.every((child) => child.exitCode !== null));
    await database.drop();
  }
}
