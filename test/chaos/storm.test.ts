// Faults that follow each other: for a while one in seven of all that passes between processes and database
// is lost, the answers to what was asked after a lost answer among them.

import { expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { findViolations } from "../support/checker.ts";
import { randomOf } from "../support/random.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { type ChaosPayload, chaosJob, Trial } from "../support/trial.ts";

const seed = Number(process.env.CHAOS_SEED ?? 20_261);
const seconds = Number(process.env.STORM_SECONDS ?? 15);
const share = Number(process.env.STORM_SHARE ?? 0.15);

test(`every enqueue is one job, and each job ends once, in a storm of losses (seed ${seed})`, async () => {
  const trial = await Trial.create();
  const proxy = await TcpProxy.start(trial.url);
  const random = randomOf(seed, "storm");
  const databaseUrl = proxy.url;
  const producer = await Millrace.connect({ databaseUrl, logLevel: "silent" });
  const resolved: boolean[] = [];
  producer.events.on("flush.resolved", ({ committed }) => resolved.push(committed));
  const acknowledged: string[] = [];
  let marks = 0;
  const payload = (): ChaosPayload => ({ kind: "quick", mark: `m${marks++}` });
  const long = () => ({ ...payload(), words: "leave it beside the door ".repeat(30) });
  const ways = [
    async () => [await producer.enqueue(chaosJob, payload())],
    async () => producer.enqueueMany(chaosJob, Array.from({ length: 20 }, payload)),
    async () => producer.enqueueMany(chaosJob, Array.from({ length: 20 }, long)),
    async () => [await producer.enqueue(chaosJob, payload(), { key: `k${marks}` })],
    async () => [await producer.enqueue(chaosJob, payload(), { delayMs: 50 })],
    async () =>
      producer.enqueueMany(chaosJob, Array.from({ length: 5 }, payload), (given) => ({
        key: `many-${(given as ChaosPayload).mark}`,
      })),
  ];
  try {
    for (let n = 0; n < 2; n++)
      await trial.start({
        connect: { databaseUrl, queryTimeoutMs: 3_000 },
        work: { concurrency: 8 },
      });
    proxy.storm(() => random() < share);
    const until = Date.now() + seconds * 1_000;
    // On a slow machine it takes longer until both have happened: a lost question, and a lost answer.
    const isOver = () => Date.now() > until && new Set(resolved).size === 2;
    const produce = async () => {
      while (!isOver()) {
        const made = await ways[Math.floor(random() * ways.length)]?.().catch(() => []);
        acknowledged.push(...(made ?? []).map(({ id }) => id));
      }
    };
    await Promise.all(Array.from({ length: 8 }, produce));
    proxy.open();
    await trial.drained();
    const ended = `(select h.id, coalesce(h.payload, l.payload::json) as payload, l.job_id
      from (select id, payload from millrace.history union all select id, payload from millrace.dead_job) h
      full join millrace.long_payload l on l.job_id = h.id)`;
    const twice = `select payload->>'mark' as mark from ${ended} j group by 1 having count(*) > 1`;
    expect((await trial.db.query(twice)).rows).toEqual([]);
    const torn = `select id, job_id from ${ended} j where payload is null or id is null`;
    expect((await trial.db.query(torn)).rows).toEqual([]);
    const { rows: apart } = await trial.db.query("select count(*)::int from millrace.long_payload");
    expect(apart[0].count).toBeGreaterThan(0);
    expect(await findViolations(trial.db, acknowledged, trial.ledger())).toEqual([]);
    console.log(
      JSON.stringify({ seed, jobs: acknowledged.length, of: marks, resolved: resolved.length }),
    );
  } finally {
    proxy.open();
    await producer.stop();
    await trial.close();
    await proxy.close();
  }
});
