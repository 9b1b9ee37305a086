import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { verifyAudit } from "../../src/client/audit.ts";
import { defineJob, Millrace, NonRetryableError } from "../../src/index.ts";
import { countRows } from "../../src/store/postgres/transfer.ts";
import { runHere } from "../support/command-line.ts";
import { Workplace } from "../support/embedded.ts";
import { createDatabase } from "../support/postgres.ts";
import { Pty } from "../support/pty.ts";

const add = defineJob({
  type: "add",
  queue: "sums",
  run: ({ payload }) => (payload as { a: number }).a + 1,
});
const pay = defineJob({
  type: "pay",
  queue: "money",
  run() {
    throw new NonRetryableError("no account \\N \t \\. ü");
  },
});

let place: Workplace;
let target: Awaited<ReturnType<typeof createDatabase>>;
let seeded: Awaited<ReturnType<typeof seed>>;

beforeAll(async () => {
  place = await Workplace.create();
  target = await createDatabase();
  seeded = await seed();
});
afterAll(async () => {
  await target.drop();
  await place.cleanUp();
});

const open = (options: object) => Millrace.connect({ ...options, logLevel: "silent" });

async function onTarget<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: target.url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** Something in every table that people care about. */
async function seed() {
  const millrace = await open({ dataDir: place.dataDir });
  try {
    await millrace.configureQueue("sums", { retentionDays: 7 });
    await millrace.breakers.configure("bank", { failureThreshold: 3 });
    const trigger = { type: "TIME", name: "nightly", cron: "0 3 * * *", job: add } as const;
    await millrace.triggers.create(trigger);
    const worker = await millrace.work([add, pay]);
    const done = await millrace.enqueue(add, { a: 41, text: "tab\t, \\N and ü" });
    const dead = await millrace.enqueue(pay, {});
    for (const { id } of [done, dead]) await millrace.waitFor(id);
    await worker.stop();
    const ready = await millrace.enqueueMany(add, [{ a: 1 }, { a: 2 }, { a: 3 }]);
    const due = await millrace.enqueue(add, { a: 9 }, { delayMs: 3_600_000, key: "once" });
    const cancelled = await millrace.enqueue(add, { a: 0 });
    await millrace.cancel(cancelled.id, "not needed");
    await millrace.breakers.open("bank", "a look", "ann");
    const again = await millrace.reprocess(dead.id, "try it", "ann");
    return { done, dead, ready, due, cancelled, again };
  } finally {
    await millrace.stop();
  }
}

const promote = (...args: string[]) =>
  runHere("promote", "--to", target.url, "--data-dir", place.dataDir, ...args);

test("refuses while somebody uses the embedded database, and says who", async () => {
  const user = await open({ dataDir: place.dataDir });
  try {
    await user.work([add], { name: "mill-7", queues: ["idle"], concurrency: 1 }).then((worker) => {
      return worker.stop();
    });
    const { code, err } = await promote();
    expect(code).toBe(4);
    expect(err).toMatch(/is in use by .*millrace /);
    expect(err).toContain("Stop millrace dev, your workers");
  } finally {
    await user.stop();
  }
});

test("a dry run counts and changes nothing", async () => {
  const { code, out } = await promote("--dry-run");
  expect(code).toBe(0);
  expect(out).toMatch(/^WHAT +COUNT\n/);
  expect(out).toMatch(/^jobs that wait or run +4$/m);
  expect(out).toMatch(/^dead letters +1$/m);
  expect(out).toMatch(/^queues +\d+$/m);
  expect(out).not.toContain("dead_job");
  expect(out).toContain("Nothing was changed.");
  const schemas = await onTarget((client) =>
    client.query("select from pg_namespace where nspname = 'millrace'"),
  );
  expect(schemas.rowCount).toBe(0);
});

test("a copy that fails half-way leaves nothing behind", async () => {
  const spoiled = await createDatabase();
  const millrace = await open({ databaseUrl: spoiled.url });
  await millrace.stop();
  const client = new pg.Client({ connectionString: spoiled.url });
  await client.connect();
  await client.query("alter table millrace.scheduled_job add check (type <> 'add')");
  const ended = await runHere("promote", "--to", spoiled.url, "--data-dir", place.dataDir);
  expect(ended.code).toBe(1);
  expect(ended.err).toContain("It could not be copied:");
  expect(ended.err).toContain("rolled back");
  const left = (await countRows(client, "millrace")).filter(({ rows }) => rows > 0);
  expect(left.map(({ table }) => table).sort()).toEqual(["audit_head", "leader"]);
  await client.end();
  await spoiled.drop();
});

test("copies everything in one go; the audit trail is whole, and jobs run on", async () => {
  const source = await open({ dataDir: place.dataDir });
  const before = await source.store.find(
    Object.values(seeded)
      .flat()
      .map(({ id }) => id),
  );
  const headBefore = await source.store.service.audit.head();
  await source.stop();
  const terminal = new Pty(["promote", "--to", target.url, "--data-dir", place.dataDir], {
    columns: 140,
    rows: 40,
  });
  expect(await terminal.ended(), terminal.raw).toBe(0);
  expect(terminal.screen.text).toMatch(/^copying █+ 100% {2}(\d+) of \1$/m);
  expect(terminal.screen.text).toMatch(/\d+ rows copied to postgres:\S+; the audit trail is whole/);

  const millrace = await open({ databaseUrl: target.url });
  try {
    const after = await millrace.store.find(before.map(({ id }) => id));
    const byId = (jobs: typeof before) => [...jobs].sort((a, b) => (a.id < b.id ? -1 : 1));
    expect(byId(after)).toEqual(byId(before));
    expect(await millrace.store.service.audit.head()).toEqual(headBefore);
    expect(await verifyAudit(millrace.store.service.audit, headBefore)).toMatchObject({ ok: true });
    expect(await millrace.breakers.get("bank")).toMatchObject({
      state: "OPEN",
      failureThreshold: 3,
    });
    expect(await millrace.triggers.list()).toMatchObject([{ name: "nightly" }]);
    // Keys still know their jobs, and sequences go on where they were.
    const repeated = await millrace.enqueue(add, { a: 9 }, { delayMs: 3_600_000, key: "once" });
    expect(repeated).toEqual({ id: seeded.due.id, existing: true });
    const queues = await millrace.queues();
    const fresh = await millrace.configureQueue("fresh", {});
    expect(fresh.id).toBeGreaterThan(Math.max(...queues.map(({ id }) => id)));
    await millrace.breakers.close("bank", "looked", "ann");
    await millrace.work([add, pay]);
    const later = await millrace.enqueue(add, { a: 100 });
    for (const { id } of [...seeded.ready, later]) await millrace.result(id, { timeoutMs: 60_000 });
    expect((await millrace.waitFor(seeded.again.id)).state).toBe("dead");
    expect(await verifyAudit(millrace.store.service.audit, headBefore)).toMatchObject({ ok: true });
  } finally {
    await millrace.stop();
  }
});

test("a trail that somebody has changed arrives as it is, and is not chained anew", async () => {
  const source = await open({ dataDir: place.dataDir });
  const client = new pg.Client({ connectionString: source.databaseUrl });
  await client.connect();
  await client.query("alter table millrace.audit disable trigger user");
  await client.query("update millrace.audit set reason = 'something else' where no = 1");
  await client.end();
  await source.stop();
  const other = await createDatabase();
  const ended = await runHere("promote", "--to", other.url, "--data-dir", place.dataDir);
  expect(ended.code).toBe(1);
  expect(ended.err).toContain("the audit trail is broken at entry 1");
  await other.drop();
});

test("refuses a target that is in use, a wrong URL, and a folder without a database", async () => {
  const again = await promote();
  expect(again.code).toBe(4);
  expect(again.err).toMatch(/is in use: there are rows in [\s\S]*TARGET_NOT_EMPTY[\s\S]*--schema/);
  expect((await promote("--dry-run")).code).toBe(4);
  const dir = ["--data-dir", place.dataDir];
  const gone = await runHere("promote", "--to", "postgres://me:hush@127.0.0.1:1/x", ...dir);
  expect([gone.code, gone.err]).toEqual([1, expect.stringContaining("DATABASE_UNAVAILABLE")]);
  expect(gone.err).toMatch(/next: .* database of --to\.\n$/);
  expect(gone.err).not.toContain("DATABASE_URL");
  expect(gone.err).not.toContain("hush");
  for (const to of ["nonsense", "mysql://x/y"]) {
    const wrong = await runHere("promote", "--to", to, ...dir);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringMatching(/^--to must be/)]);
  }
  const none = await runHere("promote", "--to", target.url, "--data-dir", `${place.root}/none`);
  expect([none.code, none.err]).toEqual([3, expect.stringContaining("no embedded database")]);
  expect((await runHere("promote")).code).toBe(2);
});
