import { setTimeout as delay } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { count } from "../support/ledger.ts";
import { startServer, type TestServer } from "../support/postgres.ts";
import { Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
let server: TestServer | undefined;
afterEach(async () => {
  await trial.close();
  await server?.drop();
  server = undefined;
});

/** Enqueues one job after the other until told to stop; gives the ids that were acknowledged. */
function produce() {
  let stopped = false;
  const acknowledged: string[] = [];
  const done = (async () => {
    while (!stopped) {
      const id = await trial.enqueue({ kind: "long", ms: 20 }).catch(() => null);
      if (id !== null) acknowledged.push(id);
      await delay(5);
    }
  })();
  return {
    acknowledged,
    async stop() {
      stopped = true;
      await done;
      return acknowledged;
    },
  };
}

async function expectEachOnce(ids: readonly string[]) {
  const { rows } = await trial.db.query<{ id: string; n: number; state: string }>(
    "select id, count(*)::int as n, min(state) as state from millrace.history group by id",
  );
  const ended = new Map(rows.map((row) => [row.id, row]));
  expect(ids.filter((id) => ended.get(id)?.state !== "completed")).toEqual([]);
  expect(rows.filter((row) => row.n !== 1)).toEqual([]);
  expect(await trial.count("dead")).toBe(0);
}

test("fault 20: PostgreSQL restarted without a shutdown under load loses no acknowledged job", async () => {
  server = await startServer();
  trial = await Trial.create(server.url);
  const processes = [await trial.start(), await trial.start()];
  const producer = produce();
  for (let restarts = 1; restarts <= 3; restarts++) {
    const enough = producer.acknowledged.length + 40;
    await until("jobs are enqueued", () => producer.acknowledged.length >= enough);
    await server.restartImmediate();
  }
  const ids = await producer.stop();
  await until(
    "nothing is open",
    () =>
      trial.count("open").then(
        (n) => n === 0,
        () => false,
      ),
    60_000,
  );
  await expectEachOnce(ids);
  for (const process of processes) {
    expect(process.exited).toBe(false);
    expect(count(process.lines(), "connection.lost")).toBeGreaterThan(0);
  }
});

const terminate = (like: string) =>
  trial.db.query<{ pid: number }>(
    `select pid, pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like $1`,
    [like],
  );

test("fault 21: connections that are terminated at random lose no job", async () => {
  trial = await Trial.create();
  const processes = [await trial.start(), await trial.start()];
  const producer = produce();
  for (let rounds = 1; rounds <= 12; rounds++) {
    const enough = producer.acknowledged.length + 10;
    await until("jobs are enqueued", () => producer.acknowledged.length >= enough);
    await terminate("millrace %");
  }
  const ids = await producer.stop();
  await trial.drained();
  await expectEachOnce(ids);
  for (const process of processes) {
    expect(count(process.lines(), "connection.lost")).toBeGreaterThan(0);
  }
});

test("fault 21: a listener whose connection is terminated listens again", async () => {
  trial = await Trial.create();
  const process = await trial.start({ connect: { pollMs: 600_000 } });
  const { rows } = await terminate("millrace listener");
  expect(rows).toHaveLength(1);
  await until("there is a new listener", async () => {
    const now = await trial.db.query(
      `select from pg_stat_activity where datname = current_database()
        and application_name = 'millrace listener' and query ilike 'listen%' and pid <> $1`,
      [rows[0]?.pid],
    );
    return now.rowCount === 1;
  });
  await process.writes("connection.restored", (line) => line.connection === "listener");
  // The poll is minutes away, and what the reconnection looked for itself is the first one at most.
  for (let i = 0; i < 3; i++) {
    const job = await trial.end(await trial.enqueue({ kind: "quick" }), 20_000);
    expect(job.state).toBe("completed");
  }
});
