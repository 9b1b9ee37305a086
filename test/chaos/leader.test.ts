// Leaders as real processes, killed, stopped and cut off; elected in PostgreSQL and through Redis.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Options, ServiceReport } from "../../src/index.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";
import type { WorkerProcess } from "../support/worker-process.ts";

const leaderTtlMs = 2_000;
/** For a machine that steals time; the bound itself is two TTLs, by the database's clock. */
const slackMs = 5_000;

let redis: RedisServer;
let trial: Trial;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.drop());
beforeEach(async () => {
  trial = await Trial.create();
  await trial.db.query(
    "create table leader_write (no bigint generated always as identity, term bigint, proc text)",
  );
});
afterEach(() => trial.close());

const elections: Record<string, () => Options> = {
  postgres: () => ({ leaderTtlMs, queryTimeoutMs: 1_000 }),
  redis: () => ({ leaderTtlMs, queryTimeoutMs: 1_000, election: "redis", redisUrl: redis.url }),
};

const termsOf = (process: WorkerProcess) =>
  process.of("leader.elected").map((line) => line.term ?? 0);

/** On a busy machine a term may be over as soon as it begins: the one that counts is the last. */
async function termOf(leader: WorkerProcess): Promise<number> {
  return until(`${leader.name} writes in office`, () => {
    const last = trial.ledger().findLast((line) => line.what === "leader.elected");
    const wrote = leader.of("write.accepted").some(({ term }) => term === last?.term);
    return last?.proc === leader.name && wrote && last.term;
  });
}

async function electedAfter(term: number): Promise<{ term: number; electedAt: Date }> {
  return until("another one is elected", async () => {
    const { rows } = await trial.db.query<{ term: number; electedAt: Date }>(
      `select term::int, elected_at as "electedAt" from millrace.leader where term > $1`,
      [term],
    );
    return rows[0];
  });
}

/** Terms are unique and increase, and no older one wrote after a newer one. */
async function expectOneWriterAtATime(processes: readonly WorkerProcess[]) {
  const elected = trial.ledger().filter((line) => line.what === "leader.elected");
  const terms = elected.map((line) => line.term);
  expect(new Set(terms).size).toBe(terms.length);
  const { rows } = await trial.db.query<{ term: number; proc: string }>(
    "select term::int, proc from leader_write order by no",
  );
  expect(rows.map(({ term }) => term)).toEqual(rows.map(({ term }) => term).sort((a, b) => a - b));
  const holders = new Map(elected.map((line) => [line.term, line.proc]));
  expect(rows.filter(({ term, proc }) => holders.get(term) !== proc)).toEqual([]);
  expect(new Set(rows.map(({ term }) => term)).size).toBeGreaterThan(1);
  const stray = processes.flatMap((process) => process.of("uncaught"));
  expect(stray).toEqual([]);
}

describe.each(Object.keys(elections))("leaders elected by %s", (name) => {
  const connect = () => elections[name]?.() ?? {};
  const start = async (more: Options = {}) => {
    const leader = await trial.startManager({ writes: true, connect: { ...connect(), ...more } });
    await leader.writes("leader.elected");
    const others = [
      await trial.startManager({ writes: true, connect: connect() }),
      await trial.startManager({ writes: true, connect: connect() }),
    ];
    return { leader, others, term: await termOf(leader) };
  };

  test("fault 9: a killed leader is replaced within two TTLs", async () => {
    const { leader, others, term } = await start();
    const killedAt = await trial.now();
    await leader.kill();
    const next = await electedAfter(term);
    expect(next.term).toBe(term + 1);
    expect(next.electedAt.getTime() - killedAt).toBeLessThan(2 * leaderTtlMs + slackMs);
    await until("it writes", () => others.some((one) => one.of("write.accepted").length > 0));
    await expectOneWriterAtATime(others);
  });

  test("fault 10: a leader that was stopped wakes up superseded, and its writes are refused", async () => {
    const { leader, others, term } = await start();
    leader.signal("SIGSTOP");
    await electedAfter(term);
    await until("it writes", () => others.some((one) => one.of("write.accepted").length > 0));
    leader.signal("SIGCONT");
    await leader.writes("leader.lost", (line) => line.term === term);
    await leader.writes("write.refused", (line) => line.term === term);
    await expectOneWriterAtATime([leader, ...others]);
  });

  test("a leader cut off from PostgreSQL steps down by its own clock, and another one is elected", async () => {
    const proxy = await TcpProxy.start(trial.url);
    const { leader, others, term } = await start({ databaseUrl: proxy.url });
    const cutAt = await trial.now();
    proxy.silence();
    const lost = await leader.writes("leader.lost", (line) => line.term === term);
    expect(lost.reason).toBe("not_renewed");
    const next = await electedAfter(term);
    expect(next.electedAt.getTime() - cutAt).toBeLessThan(2 * leaderTtlMs + slackMs);
    await until("it writes", () => others.some((one) => one.of("write.accepted").length > 0));
    proxy.open();
    await leader.writes("write.refused", (line) => line.term === term);
    await expectOneWriterAtATime([leader, ...others]);
    await leader.kill();
    await proxy.close();
  });

  test("a leader whose connections have gone silent lets go of them, and is elected anew over others", async () => {
    const proxy = await TcpProxy.start(trial.url);
    const options = { writes: true, connect: { ...connect(), databaseUrl: proxy.url } };
    const leader = await trial.startManager(options);
    const term = await termOf(leader);
    // Each service has its connection, and sleeps or waits for an answer when it is lost.
    await until("every service has run", async () => {
      const reports = (await leader.reports()) as ServiceReport[];
      return reports.length > 0 && reports.every(({ lastRunAt }) => lastRunAt !== null);
    });
    proxy.muffle();
    await leader.writes("leader.lost", (line) => (line.term ?? 0) >= term);
    await leader.writes("leader.elected", (line) => (line.term ?? 0) > term);
    await leader.kill();
    await proxy.close();
  });

  test("a leader that stops in good order resigns, and leaves the office to another one", async () => {
    const { leader, others, term } = await start();
    leader.askToStop();
    await leader.ended();
    expect(leader.exitCode).toBe(0);
    expect(leader.of("leader.lost").at(-1)).toMatchObject({ term, reason: "resigned" });
    await electedAfter(term);
    await until("it writes", () => others.some((one) => one.of("write.accepted").length > 0));
    await expectOneWriterAtATime([leader, ...others]);
  });
});

test("a leader cut off from Redis stays in office, and so does its term", async () => {
  const proxy = await TcpProxy.start(redis.url);
  // Longer than a machine steals time: nobody but Redis may keep it from renewing.
  const ttlMs = 3 * leaderTtlMs;
  const options = { ...elections.redis?.(), leaderTtlMs: ttlMs };
  const leader = await trial.startManager({ connect: { ...options, redisUrl: proxy.url } });
  const { term = 0 } = await leader.writes("leader.elected");
  const other = await trial.startManager({ connect: options });
  proxy.refuse();
  await until("it renewed twice since", async () => {
    const { rows } = await trial.db.query<{ long: boolean }>(
      "select expires_at > elected_at + $1::int * interval '1 ms' as long from millrace.leader",
      [4 * ttlMs],
    );
    return rows[0]?.long;
  });
  proxy.open();
  expect(termsOf(other)).toEqual([]);
  expect(termsOf(leader)).toEqual([term]);
  await leader.kill();
  await electedAfter(term);
  await proxy.close();
});
