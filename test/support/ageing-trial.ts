// Ageing with real workers and the real store, in virtual time: a tick is a second, in which every slot of
// the workers ends one job, more urgent jobs come than that, and what waits in the store becomes older.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { overtakenWithinMs } from "../../src/domain/ageing.ts";
import { defineJob, Millrace } from "../../src/index.ts";
import { createDatabase } from "./postgres.ts";
import { until } from "./until.ts";

export interface AgeingTrialOptions {
  readonly ticks: number;
  readonly workers: number;
  readonly concurrency: number;
  /** null: priorities are strict. */
  readonly ageingStepMs: number | null;
}

export interface AgeingReport {
  readonly started: number;
  readonly lowEnqueued: number;
  readonly lowStarted: number;
  /** Pairs of jobs in which the later one was claimed first. */
  readonly overtakings: number;
  /** By how much the worst of them went beyond the documented bound; at most 0 when it holds. */
  readonly worstBeyondBoundMs: number;
}

interface Sent {
  readonly weight: number;
  /** Virtual time that had been passed when it was enqueued. */
  readonly passedMs: number;
  readonly tick: number;
}

interface Claimed extends Sent {
  /** Virtual. */
  readonly readyMs: number;
  /** Real, of the database; null: it still waits. */
  readonly claimedMs: number | null;
}

const tickMs = 1_000;
/** Quick runs are fetched ahead of, and what is fetched waits for nobody more urgent. */
const slowMs = 20;

export async function ageingTrial(options: AgeingTrialOptions): Promise<AgeingReport> {
  const database = await createDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const instances: Millrace[] = [];
  try {
    for (let n = 0; n < options.workers; n++)
      instances.push(await Millrace.connect({ databaseUrl: database.url, logLevel: "silent" }));
    return await run(options, instances, client);
  } finally {
    await Promise.all(instances.map((millrace) => millrace.stop()));
    await client.end();
    await database.drop();
  }
}

async function run(
  { ticks, concurrency, ageingStepMs }: AgeingTrialOptions,
  instances: readonly Millrace[],
  client: pg.Client,
): Promise<AgeingReport> {
  const [millrace] = instances as [Millrace];
  const queue = `ageing-${randomUUID()}`;
  const slots = concurrency * instances.length;
  await millrace.configureQueue(queue, { ageingStepMs, concurrency: 1_000 });
  const ends = new Set<() => void>();
  const job = defineJob({
    type: "aged",
    queue,
    run: () => new Promise<void>((resolve) => void ends.add(resolve)),
  });
  const sent = new Map<string, Sent>();
  const ackedMs: number[] = [];
  let passedMs = 0;
  const enqueue = async (tick: number) => {
    const wanted = [
      ...Array<"high">(slots + 1).fill("high"),
      ...(tick % 2 === 0 ? (["normal"] as const) : []),
      ...(tick % 3 === 0 ? (["low"] as const) : []),
    ];
    for (const [priority, weight] of [
      ["low", 10],
      ["normal", 5],
      ["high", 0],
    ] as const) {
      const many = wanted.filter((one) => one === priority);
      for (const { id } of await millrace.enqueueMany(job, many, { priority }))
        sent.set(id, { weight, passedMs, tick });
    }
    const { rows } = await client.query(
      "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
    );
    ackedMs.push(rows[0].ms);
  };
  await enqueue(0);
  for (const instance of instances) await instance.work([job], { concurrency, drainMs: 0 });
  for (let tick = 1; tick <= ticks; tick++) {
    await until("every slot of the workers is in use", () => ends.size === slots);
    const inUseAt = performance.now();
    await enqueue(tick);
    await client.query(
      "update millrace.job set ready_at = ready_at - $1 * interval '1 ms' where claim_id is null",
      [tickMs],
    );
    passedMs += tickMs;
    await until("none of the runs was quick", () => performance.now() - inUseAt > slowMs);
    const ending = [...ends];
    ends.clear();
    for (const end of ending) end();
  }
  await until("every slot of the workers is in use", () => ends.size === slots);
  const jobs = await readClaims(client, sent);
  for (const end of ends) end();
  return judge(jobs, ackedMs, ageingStepMs ?? 0);
}

async function readClaims(client: pg.Client, sent: ReadonlyMap<string, Sent>): Promise<Claimed[]> {
  const { rows } = await client.query(
    `select id, extract(epoch from created_at)::float8 * 1000 as created_ms,
      extract(epoch from started_at)::float8 * 1000 as claimed_ms
    from (select id, created_at, started_at from millrace.job
      union all select id, created_at, started_at from millrace.history) j`,
  );
  return rows.flatMap(({ id, created_ms, claimed_ms }) => {
    const one = sent.get(id);
    if (one === undefined) return [];
    return { ...one, readyMs: created_ms + one.passedMs, claimedMs: claimed_ms };
  });
}

/** Looks at every job that was claimed while another waited, one that had been there before the claim. */
function judge(jobs: readonly Claimed[], ackedMs: readonly number[], stepMs: number): AgeingReport {
  let overtakings = 0;
  let worst = Number.NEGATIVE_INFINITY;
  for (const first of jobs) {
    const { claimedMs } = first;
    if (claimedMs === null) continue;
    for (const waiting of jobs) {
      const waits = waiting.claimedMs === null || waiting.claimedMs > claimedMs;
      const laterMs = first.readyMs - waiting.readyMs;
      if (!waits || laterMs <= 0 || (ackedMs[waiting.tick] ?? 0) > claimedMs) continue;
      overtakings++;
      worst = Math.max(worst, laterMs - overtakenWithinMs(waiting.weight, first.weight, stepMs));
    }
  }
  const low = jobs.filter(({ weight }) => weight === 10);
  const isStarted = ({ claimedMs }: Claimed) => claimedMs !== null;
  return {
    started: jobs.filter(isStarted).length,
    lowEnqueued: low.length,
    lowStarted: low.filter(isStarted).length,
    overtakings,
    worstBeyondBoundMs: Math.round(worst),
  };
}
