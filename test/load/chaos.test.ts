// A randomized run: real processes and a real server, broken again and again while 20,000 jobs go
// through. A seed fixes the draws, not their timing. CHAOS_SEED and CHAOS_JOBS vary it.

import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { findViolations } from "../support/checker.ts";
import { count } from "../support/ledger.ts";
import { Nemesis } from "../support/nemesis.ts";
import { startServer } from "../support/postgres.ts";
import { randomOf } from "../support/random.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { type ChaosPayload, chaosJob, Trial } from "../support/trial.ts";

const seed = Number(process.env.CHAOS_SEED ?? 20_260);
const jobs = Number(process.env.CHAOS_JOBS ?? 20_000);
const leaseMs = 1_500;

/** Three in a hundred run longer than the lease, and do not care about their signal. */
function payload(random: () => number): ChaosPayload {
  const luck = random();
  if (luck < 0.03) return { kind: "deaf", ms: Math.round(leaseMs * (1 + 0.5 * random())) };
  if (luck < 0.04) return { kind: "fail", once: true };
  return luck < 0.5 ? { kind: "quick" } : { kind: "long", ms: Math.round(20 * random()) };
}

test(`nothing is lost or ended twice under random faults (seed ${seed})`, async () => {
  const server = await startServer();
  const trial = await Trial.create(server.url);
  const proxy = await TcpProxy.start(trial.url);
  const producer = await Millrace.connect({ databaseUrl: proxy.url, logLevel: "silent" });
  const resolved: boolean[] = [];
  producer.events.on("flush.resolved", ({ committed }) => resolved.push(committed));
  const nemesis = new Nemesis({
    trial,
    server,
    proxy,
    processes: 5,
    leaseMs,
    random: randomOf(seed, "nemesis"),
  });
  try {
    await nemesis.start();
    const random = randomOf(seed, "producer");
    const acknowledged: string[] = [];
    const until90s = Date.now() + 90_000;
    while (acknowledged.length < jobs || Date.now() < until90s) {
      const batch = acknowledged.length < jobs ? Math.ceil(jobs / 400) : 1;
      const sent = Array.from({ length: batch }, () => producer.enqueue(chaosJob, payload(random)));
      for (const answer of await Promise.allSettled(sent)) {
        if (answer.status === "fulfilled") acknowledged.push(answer.value.id);
      }
      await delay(100 * random());
    }
    await nemesis.stop();
    await trial.drained(180_000);
    const ledger = trial.ledger();
    const seen = Object.fromEntries(
      [
        "job.settle_refused",
        "job.settle_repeated",
        "job.lapsed",
        "lease.lost",
        "connection.lost",
      ].map((what) => [what, count(ledger, what)]),
    );
    const replayed = ledger.filter((line) => line.what === "claim.replayed" && line.jobs !== 0);
    const told = { ...seen, replayed: replayed.length, resolved: resolved.length };
    console.log(
      JSON.stringify({ seed, jobs: acknowledged.length, nemesis: nemesis.done, ...told }),
    );
    expect(await findViolations(trial.db, acknowledged, ledger)).toEqual([]);
    // A run in which nothing of this happened has tested nothing.
    expect(Object.entries(told).filter(([, times]) => times === 0)).toEqual([]);
  } finally {
    await producer.stop();
    await trial.close();
    await proxy.close();
    await server.drop();
  }
});
