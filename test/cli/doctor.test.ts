import pg from "pg";
import { expect, test } from "vitest";
import {
  lifeFindings,
  redisFindings,
  schemaFindings,
  serverFindings,
} from "../../src/cli/doctor-findings.ts";
import { defineJob, Millrace } from "../../src/index.ts";
import { CommandStage, jsonLines, runHere } from "../support/command-line.ts";
import { startRedis } from "../support/redis-server.ts";
import { startTransactionPooler } from "../support/transaction-pooler.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("file");

async function examine() {
  const { code, out, err } = await runHere("doctor", "--json");
  expect(err).toBe("");
  const found = new Map(jsonLines(out).map((line) => [line.check, line]));
  const troubles = [...found.values()].filter(({ health }) => health !== "ok");
  expect(troubles.every(({ mend }) => typeof mend === "string" && mend !== "")).toBe(true);
  return { code, health: (check: string) => found.get(check)?.health, found };
}

async function onServer(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: stage.url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

test("goes from an empty database to a healthy one, and sees what somebody broke", async () => {
  const empty = await examine();
  expect([empty.code, empty.health("schema")]).toEqual([2, "fail"]);
  expect(empty.found.get("schema")?.mend).toContain("millrace migrate");
  expect(empty.found.has("leader")).toBe(false);

  const millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" });
  try {
    await millrace.manage();
    await millrace.work([defineJob({ type: "t", run: () => 1 })]);
    await until("a leader is in office", async () => (await millrace.store.leadership()).inOffice);
    const well = await examine();
    expect([...well.found.values()].filter(({ health }) => health !== "ok")).toEqual([]);
    expect(well.code).toBe(0);
    for (const check of ["PostgreSQL", "fsync", "pooler", "LISTEN", "schema", "bloat", "clock"])
      expect(well.health(check)).toBe("ok");

    const name = new URL(stage.url).pathname.slice(1);
    await onServer(`alter database ${name} set synchronous_commit = off`);
    const careless = await examine();
    expect([careless.code, careless.health("synchronous_commit")]).toEqual([2, "fail"]);
    await onServer(`alter database ${name} reset synchronous_commit`);

    await onServer("delete from millrace.migration where version = 2");
    const behind = await examine();
    expect([behind.code, behind.found.get("schema")?.found]).toEqual([
      2,
      expect.stringContaining("lacks 0002_"),
    ]);
    await onServer(`insert into millrace.migration values (2, 'again'), (5000, 'later')`);
    expect((await examine()).found.get("schema")?.health).toBe("warn");
    await onServer("delete from millrace.migration where version = 5000");
  } finally {
    await millrace.stop();
  }
  const { code, out } = await runHere("doctor");
  expect(code).toBe(1);
  expect(out).toMatch(/^ok {4}fsync +on$/m);
  expect(out).toMatch(/^warn {2}leader +none is in office\n {6}→ .*millrace manager/m);
});

test("finds a pooler that gives a session away between two statements", async () => {
  const pooler = await startTransactionPooler(stage.url);
  const direct = process.env.DATABASE_URL;
  process.env.DATABASE_URL = pooler.url;
  try {
    const { code, health } = await examine();
    expect(health("pooler")).toBe("fail");
    expect(code).toBe(2);
  } finally {
    process.env.DATABASE_URL = direct;
    await pooler.close();
  }
});

test("looks at Redis, and says so when it cannot be reached", async () => {
  const redis = await startRedis({ settings: { "maxmemory-policy": "allkeys-lru" } });
  process.env.REDIS_URL = redis.url;
  try {
    const careless = await examine();
    expect(careless.health("Redis")).toBe("ok");
    expect(careless.health("Redis eviction")).toBe("warn");
    // Hints may be lost, so it is told and is no trouble.
    expect(careless.found.get("Redis AOF")).toMatchObject({ health: "ok", mend: null });
    expect(careless.found.get("Redis AOF")?.found).toMatch(/^off: .*millrace\/queue/);
    await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    await redis.command("CONFIG", "SET", "appendonly", "yes");
    const careful = await examine();
    expect(careful.health("Redis eviction")).toBe("ok");
    expect(careful.found.get("Redis AOF")?.found).toBe("on");
    await redis.drop();
    const gone = await examine();
    expect([gone.code, gone.health("Redis")]).toEqual([2, "fail"]);
  } finally {
    delete process.env.REDIS_URL;
    await redis.drop();
  }
});

test("a server that cannot be reached is one finding, without its password", async () => {
  const ended = await stage.run(["doctor"], {
    DATABASE_URL: "postgres://me:hush@127.0.0.1:1/none",
  });
  expect(ended.code).toBe(2);
  expect(ended.out).toContain("fail  PostgreSQL");
  expect(ended.out + ended.err).not.toContain("hush");
});

const settings = {
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  autovacuum: "on",
  max_connections: "100",
};
const server = {
  ...{ version: "16.2", versionNumber: 160_002, settings, connections: 5, inRecovery: false },
  ...{ oldestSnapshotSeconds: 3, oldestSnapshotHolder: "app", preparedTransactions: 0 },
  ...{ idleSlots: 0, clockAheadMs: 5, roundTripMs: 2 },
};

test.each([
  ["fsync", "fail", { settings: { ...settings, fsync: "off" } }],
  ["full_page_writes", "fail", { settings: { ...settings, full_page_writes: "off" } }],
  ["autovacuum", "fail", { settings: { ...settings, autovacuum: "off" } }],
  ["PostgreSQL", "fail", { version: "13.1", versionNumber: 130_001 }],
  ["primary", "fail", { inRecovery: true }],
  ["connections", "warn", { connections: 95 }],
  ["clock", "warn", { clockAheadMs: -4_000 }],
  ["old snapshots", "warn", { oldestSnapshotSeconds: 3_600 }],
  ["prepared transactions", "warn", { preparedTransactions: 1 }],
  ["replication slots", "warn", { idleSlots: 2 }],
])("%s is a %s when it is not as it should be", (check, health, change) => {
  expect(serverFindings(server).every((finding) => finding.health === "ok")).toBe(true);
  const troubled = serverFindings({ ...server, ...change }).filter((one) => one.health !== "ok");
  expect(troubled).toMatchObject([{ check, health }]);
  expect(troubled[0]?.mend?.length).toBeGreaterThan(10);
});

test("bloat, an old Redis and a queue that stands still are seen", () => {
  const schema = { isThere: true, pending: [], waiting: false, ahead: 0 };
  const bloated = { live: 10, dead: 900_000, bytes: 1e9 };
  expect(schemaFindings({ ...schema, hot: bloated })).toMatchObject([{}, { health: "warn" }]);
  const emptied = { live: 10, dead: 0, bytes: 2e9 };
  expect(schemaFindings({ ...schema, hot: emptied })).toMatchObject([{}, { health: "warn" }]);
  const busy = { live: 1e6, dead: 200_000, bytes: 2e9 };
  expect(schemaFindings({ ...schema, hot: busy })).toMatchObject([{}, { health: "ok" }]);
  const redis = {
    ...{ version: "4.0.14", appendOnly: true, evictionPolicy: "noeviction" },
    ...{ maxMemoryBytes: 100, usedMemoryBytes: 95, clockAheadMs: 0 },
  };
  const found = redisFindings(redis, "Redis").filter(({ health }) => health !== "ok");
  expect(found.map(({ check }) => check)).toEqual(["Redis", "Redis memory"]);
  const queue = {
    ...{
      id: 1,
      tenant: "",
      name: "mail",
      paused: false,
      isActive: true,
      enqueued: 1,
      completed: 0,
    },
    ...{ retried: 0, died: 0, waiting: 1, running: 0, dead: 0, oldestReadySeconds: 900 },
  };
  const leadership = { term: 1, holder: null, electedAt: null, inOffice: true };
  const facts = { leadership, workers: [], queues: [queue], deadLetters: 2, needLeader: 0 };
  const life = lifeFindings(facts);
  expect(life.map(({ health }) => health)).toEqual(["ok", "warn", "warn", "warn"]);
  expect(life[2]?.mend).toContain("npx millrace jobs --queue mail");
  // Nobody in office is trouble where there was a leader, or where something needs one.
  const leaderIs = (term: number, needLeader: number) =>
    lifeFindings({ ...facts, leadership: { ...leadership, term, inOffice: false }, needLeader })[0];
  expect(leaderIs(0, 0)).toMatchObject({ check: "leader", health: "ok" });
  expect(leaderIs(0, 1)?.health).toBe("warn");
  expect(leaderIs(1, 0)?.health).toBe("warn");
});
