// What only an election through Redis does. Everything else: election.ts.

import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { RedisElection } from "../../src/manager/redis-election.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { openTestStore, type TestStore } from "../support/store.ts";

const ttlMs = 60_000;
let redis: RedisServer;
let opened: TestStore;
let key = "";
const elections: RedisElection[] = [];
beforeAll(async () => {
  [redis, opened] = await Promise.all([startRedis(), openTestStore()]);
  key = `millrace:{${(await opened.store.identity()).namespace}}:candidate`;
});
afterEach(async () => {
  for (const election of elections.splice(0)) await election.close();
  await redis.command("FLUSHALL");
  await opened.sql("update millrace.leader set expires_at = now()");
});
afterAll(async () => {
  await redis.drop();
  await opened.close();
});

function candidate(holder: string = randomUUID()): RedisElection {
  const { store } = opened;
  const { url } = redis;
  const election = new RedisElection({ store, holder, ttlMs, url, connectTimeoutMs: 2_000 });
  elections.push(election);
  return election;
}
const office = () => opened.store.leadership();
const holderInRedis = () => redis.command("GET", key);

test("who does not get the key does not ask PostgreSQL", async () => {
  await redis.command("SET", key, "somebody else");
  const { term } = await office();
  expect(await candidate().campaign()).toBeNull();
  expect(await office()).toMatchObject({ term, inOffice: false });
});

test("the key has the TTL, and a renewal extends it", async () => {
  const election = candidate();
  const term = await election.campaign();
  await redis.command("PEXPIRE", key, "1000");
  expect(await election.renew(term ?? 0)).toBe(true);
  expect(Number(await redis.command("PTTL", key))).toBeGreaterThan(1_000);
  expect(Number(await redis.command("PTTL", key))).toBeLessThanOrEqual(ttlMs);
});

test("a leader whose key another one has resigns, and leaves that key alone", async () => {
  const election = candidate();
  const term = await election.campaign();
  await redis.command("SET", key, "somebody else");
  expect(await election.renew(term ?? 0)).toBe(false);
  expect(await office()).toMatchObject({ term, inOffice: false });
  expect(await holderInRedis()).toBe("somebody else");
});

test("a leader whose key was lost has it again with its next renewal", async () => {
  const holder = randomUUID();
  const election = candidate(holder);
  const term = await election.campaign();
  await redis.command("FLUSHALL");
  expect(await election.renew(term ?? 0)).toBe(true);
  expect(await holderInRedis()).toBe(holder);
});

test("a candidate that was chosen while the office is taken gives the key back", async () => {
  const leader = candidate();
  const term = await leader.campaign();
  await redis.command("FLUSHALL");
  expect(await candidate().campaign()).toBeNull();
  expect(await holderInRedis()).toBeNull();
  expect(await leader.renew(term ?? 0)).toBe(true);
});

test("terms go on after Redis has lost everything", async () => {
  const first = await candidate().campaign();
  await redis.command("FLUSHALL");
  await opened.sql("update millrace.leader set expires_at = now()");
  expect(await candidate().campaign()).toBe((first ?? 0) + 1);
});

test("a silent Redis delays nobody for long, and no lock is held meanwhile", async () => {
  const election = candidate();
  await election.campaign();
  await redis.command("FLUSHALL");
  await opened.sql("update millrace.leader set expires_at = now()");
  redis.pause();
  try {
    const term = await election.campaign();
    expect(term).not.toBeNull();
    const asking = election.renew(term ?? 0);
    const held = await opened.sql(
      `select from pg_stat_activity where datname = current_database()
        and application_name = 'millrace leader' and state like 'idle in transaction%'`,
    );
    expect(held).toEqual([]);
    expect(await asking).toBe(true);
  } finally {
    redis.resume();
  }
});
