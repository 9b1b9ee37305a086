import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { afterEach, describe, expect, test, vi } from "vitest";
import { defineJob, Snooze } from "../../src/index.ts";
import { createTestMillrace, type TestMillrace } from "../../src/testing.ts";
import { createDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const opened: TestMillrace[] = [];

async function open(options: Parameters<typeof createTestMillrace>[0] = {}): Promise<TestMillrace> {
  const made = await createTestMillrace(options);
  opened.push(made);
  return made;
}

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(opened.splice(0).map((made) => made.stop()));
});

const quick = defineJob({ type: "quick", queue: "work", run: () => "done" });
const fails = defineJob({
  type: "fails",
  run() {
    throw new TypeError("no such thing");
  },
});

/** Names of databases or schemas on the server of this URL. */
async function list(url: string, what: "pg_database.datname" | "pg_namespace.nspname") {
  const home = new URL(url);
  if (what === "pg_database.datname") home.pathname = "/postgres";
  const client = new pg.Client({ connectionString: home.href });
  await client.connect();
  const [table, column] = what.split(".");
  const { rows } = await client.query(`select ${column} as name from ${table}`);
  await client.end();
  return rows.map((row) => row.name as string);
}

describe("the throw-away database", () => {
  test("each call has a database of its own, which is gone after stop()", async () => {
    const [one, two] = [await open(), await open()];
    await one.millrace.enqueue(quick, { n: 1 });
    expect(await one.enqueued()).toHaveLength(1);
    expect(await two.enqueued()).toHaveLength(0);
    const name = new URL(one.millrace.databaseUrl).pathname.slice(1);
    expect(await list(two.millrace.databaseUrl, "pg_database.datname")).toContain(name);
    await one.stop();
    await one.stop();
    expect(await list(two.millrace.databaseUrl, "pg_database.datname")).not.toContain(name);
  });

  test("in a given database it is a fresh schema, which is gone after stop()", async () => {
    const database = await createDatabase();
    const before = await list(database.url, "pg_namespace.nspname");
    vi.stubEnv("DATABASE_URL", database.url);
    const made = await open();
    expect(made.millrace.databaseUrl).toBe(database.url);
    await made.millrace.enqueue(quick, {});
    expect((await made.drain([quick])).runs).toHaveLength(1);
    expect(await list(database.url, "pg_namespace.nspname")).toContain(made.millrace.config.schema);
    await made.stop();
    expect(await list(database.url, "pg_namespace.nspname")).toEqual(before);
    await database.drop();
  });

  test("what a killed process left behind is removed by those who come later", async () => {
    const script = join(import.meta.dirname, "..", "processes", "dev-test-database.mjs");
    const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(createInterface({ input: child.stdout }), "line");
    const name = new URL(JSON.parse(line).url).pathname.slice(1);
    const beside = await open();
    expect(await list(beside.millrace.databaseUrl, "pg_database.datname")).toContain(name);
    child.kill("SIGKILL");
    await once(child, "exit");
    await until("the database of the dead process is gone", async () => {
      await (await createTestMillrace()).stop();
      const names = await list(beside.millrace.databaseUrl, "pg_database.datname");
      return !names.includes(name);
    });
    await beside.millrace.enqueue(quick, {});
  });
});

describe("drain", () => {
  test("runs what is ready and what that enqueues, and says how each run ended", async () => {
    const { millrace, drain } = await open();
    const second = defineJob({ type: "second", run: () => ({ n: 2 }) });
    const first = defineJob({
      type: "first",
      async run() {
        await millrace.enqueue(second, {});
      },
    });
    await millrace.enqueue(first, {});
    await millrace.enqueue(quick, {}, { delayMs: 60_000 });
    const { runs, waiting, advancedMs } = await drain([first, second, quick]);
    expect(runs.map(({ job, outcome }) => [job.type, outcome])).toEqual([
      ["first", "completed"],
      ["second", "completed"],
    ]);
    expect(runs[1]?.job.result).toEqual({ n: 2 });
    expect({ waiting, advancedMs }).toEqual({ waiting: 1, advancedMs: 0 });
  });

  test("runs in the order of priority, one at a time", async () => {
    const { millrace, drain } = await open();
    for (const priority of ["low", "normal", "high"]) {
      await millrace.enqueue(quick, { priority }, { priority });
    }
    const { runs } = await drain([quick]);
    expect(runs.map(({ job }) => job.payload)).toEqual([
      { priority: "high" },
      { priority: "normal" },
      { priority: "low" },
    ]);
  });

  test("shows the very error a handler threw", async () => {
    const { millrace, drain } = await open();
    const error = new RangeError("too far", { cause: "the map" });
    const lost = defineJob({
      type: "lost",
      run() {
        throw error;
      },
    });
    await millrace.enqueue(lost, {});
    const { runs, waiting } = await drain([lost]);
    expect(runs).toMatchObject([{ attempt: 1, outcome: "retried" }]);
    expect(runs[0]?.error).toBe(error);
    expect(waiting).toBe(1);
    await millrace.enqueue(lost, {});
    await expect(drain([lost], { throwErrors: true })).rejects.toBe(error);
  });

  test("with advance, runs retries to their end without waiting for them", async () => {
    const { millrace, drain } = await open();
    const { id } = await millrace.enqueue(fails, {}, { maxAttempts: 3 });
    await millrace.enqueue(quick, {}, { delayMs: 86_400_000 });
    const { runs, waiting, advancedMs } = await drain([fails, quick], { advance: true });
    expect(runs.map(({ job, attempt, outcome }) => [job.type, attempt, outcome])).toEqual([
      ["fails", 1, "retried"],
      ["fails", 2, "retried"],
      ["fails", 3, "dead"],
      ["quick", 1, "completed"],
    ]);
    expect(waiting).toBe(0);
    expect(advancedMs).toBeGreaterThan(86_300_000);
    expect((await millrace.get(id))?.error?.message).toContain("no such thing");
  });

  test("gives up on a job that comes back for ever, and names its last error", async () => {
    const { millrace, drain } = await open();
    const snoozes = defineJob({
      type: "snoozes",
      run() {
        throw new Snooze(1_000);
      },
    });
    await millrace.enqueue(snoozes, {});
    await expect(drain([snoozes], { advance: true, maxRuns: 5 })).rejects.toMatchObject({
      code: "TIMEOUT",
      details: { runs: 5 },
    });
    await millrace.enqueue(fails, {}, { maxAttempts: 1_000 });
    await expect(drain([fails], { advance: true, maxRuns: 5 })).rejects.toThrow("no such thing");
  });

  test("gives up on a handler that hangs, and aborts it", async () => {
    const { millrace, drain } = await open();
    let reason: unknown;
    const hangs = defineJob({
      type: "hangs",
      run: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            reason = signal.reason;
            reject(signal.reason);
          });
        }),
    });
    const { id } = await millrace.enqueue(hangs, {});
    await expect(drain([hangs], { timeoutMs: 2_000 })).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(String(reason)).toContain("stopping");
    expect((await millrace.get(id))?.state).toBe("ready");
  });

  test("does not wait for paused queues, other types or expired jobs", async () => {
    const { millrace, drain, advance } = await open();
    await millrace.enqueue(quick, {});
    await millrace.pauseQueue("work");
    await millrace.enqueue(defineJob({ type: "other" }), {});
    const { id } = await millrace.enqueue(fails, {}, { expiresInMs: 1_000 });
    await advance(2_000);
    expect(await drain([quick, fails], { advance: true })).toMatchObject({ runs: [], waiting: 2 });
    expect((await millrace.get(id))?.state).toBe("expired");
  });

  test("can be called again and again", async () => {
    const { millrace, drain } = await open();
    for (let round = 0; round < 5; round++) {
      await millrace.enqueue(quick, { round });
      expect((await drain([quick])).runs).toHaveLength(1);
    }
  });
});

describe("advance", () => {
  test("makes a delayed job ready when its time has come, not before", async () => {
    const { millrace, advance } = await open();
    const { id } = await millrace.enqueue(quick, {}, { delayMs: 3_600_000 });
    await advance(3_500_000);
    expect((await millrace.get(id))?.state).toBe("scheduled");
    await advance(100_000);
    expect((await millrace.get(id))?.state).toBe("ready");
  });

  test("lets a retry fall due after exactly its delay, because there is no jitter", async () => {
    const { millrace, drain, advance } = await open();
    const hourly = defineJob({
      type: "hourly",
      retry: { baseMs: { retryable: 3_600_000 }, capMs: 3_600_000 },
      run() {
        throw new Error("not now");
      },
    });
    await millrace.enqueue(hourly, {});
    await drain([hourly]);
    await advance(3_000_000);
    expect((await drain([hourly])).runs).toHaveLength(0);
    await advance(600_000);
    expect((await drain([hourly])).runs).toHaveLength(1);
  });

  test("ages idempotency keys", async () => {
    const { millrace, advance } = await open();
    const first = await millrace.enqueue(quick, {}, { key: "k" });
    expect((await millrace.enqueue(quick, {}, { key: "k" })).existing).toBe(true);
    await advance(31 * 86_400_000);
    const later = await millrace.enqueue(quick, {}, { key: "k" });
    expect(later.existing).toBe(false);
    expect(later.id).not.toBe(first.id);
  });

  test("is noticed by a worker that runs already", async () => {
    const { millrace, advance } = await open({ pollMs: 3_600_000 });
    const worker = await millrace.work([quick]);
    const { id } = await millrace.enqueue(quick, {}, { delayMs: 3_600_000 });
    // Meanwhile the scheduler has looked and gone to sleep again.
    for (let n = 0; n < 20; n++) await millrace.result((await millrace.enqueue(quick, { n })).id);
    await advance(3_600_000);
    expect(await millrace.result(id, { timeoutMs: 30_000 })).toBe("done");
    await worker.stop();
  });

  test("refuses to go back", async () => {
    const { advance } = await open();
    await expect(advance(-1)).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
});
