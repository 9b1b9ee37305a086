// What a restore does to jobs that ran since the backup, as docs/guides/deploying.md says. The backup is
// taken while jobs run, and a new server is started on it.

import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { verifyAudit } from "../../src/client/audit.ts";
import { type ConnectOptions, defineJob, Millrace } from "../../src/index.ts";
import { takeBaseBackup } from "../support/base-backup.ts";
import { startServer, startServerOn, type TestServer } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const quick: ConnectOptions = {
  ...{ logLevel: "silent", leaseMs: 1_000, reclaimMs: 200, pollMs: 200, drainMs: 5_000 },
};

let before: TestServer;
let after: TestServer | undefined;
beforeAll(async () => {
  // Nothing but our own work touches its files while they are copied.
  before = await startServer({ settings: { autovacuum: "off" } });
});
afterAll(async () => {
  await before.drop();
  await after?.drop();
});

/** One run of a handler: which job, under which key, as which attempt. */
interface Run {
  readonly name: string;
  readonly key: string;
  readonly attempt: number;
}

function createHandlers(gate: Promise<void>) {
  const runs: Run[] = [];
  const payload = z.object({ name: z.string() });
  const note = (name: string, job: { idempotencyKey: string; attempt: number }) =>
    runs.push({ name, key: job.idempotencyKey, attempt: job.attempt });
  const plain = defineJob({
    ...{ type: "plain", queue: "plain", payload },
    run: ({ payload, job }) => void note(payload.name, job),
  });
  const slow = defineJob({
    ...{ type: "slow", queue: "slow", payload },
    async run({ payload, job }) {
      note(payload.name, job);
      await gate;
    },
  });
  const failing = defineJob({
    ...{ type: "failing", queue: "failing", payload, maxAttempts: 1 },
    run({ payload, job }) {
      note(payload.name, job);
      throw new Error("no");
    },
  });
  return { runs, plain, slow, failing };
}

const named = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ name: `${prefix}-${n}` }));
const namesOf = (runs: readonly Run[]) => runs.map(({ name }) => name).sort();

test("what had not ended at the backup runs again, what was enqueued since is gone, and nothing else", async () => {
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const { runs, plain, slow, failing } = createHandlers(gate);
  const old = await Millrace.connect({ databaseUrl: before.url, ...quick });
  const worker = await old.work([plain, slow, failing]);

  const done = await old.enqueueMany(plain, named("done", 5));
  const [dead] = await old.enqueueMany(failing, named("dead", 1));
  for (const { id } of [...done, ...(dead ? [dead] : [])]) await old.waitFor(id);
  const running = await old.enqueueMany(slow, named("running", 2));
  await until("both run", () => runs.filter(({ name }) => name.startsWith("running")).length === 2);
  const waiting = await old.enqueueMany(plain, named("waiting", 3), { delayMs: 3_600_000 });
  await old.pauseQueue("plain");
  const ready = await old.enqueueMany(plain, named("ready", 3), ({ name }) => ({ key: name }));

  const backup = await takeBaseBackup(before);

  // The day goes on: everything ends, more comes, and an operator repairs something.
  open();
  await old.resumeQueue("plain");
  const late = await old.enqueueMany(plain, named("late", 2), ({ name }) => ({ key: name }));
  for (const { id } of [...running, ...ready, ...late]) await old.waitFor(id);
  await old.reprocess(String(dead?.id), "repaired after the backup");
  const keptHead = await old.store.service.audit.head();
  await worker.stop();
  await old.stop();
  const ranBefore = [...runs];
  await before.stop();

  after = await startServerOn(backup);
  const again = createHandlers(Promise.resolve());
  const restored = await Millrace.connect({ databaseUrl: after.url, ...quick });
  const stateOf = async ({ id }: { id: string }) => (await restored.get(id))?.state ?? "unknown";
  expect(await Promise.all(done.map(stateOf))).toEqual(Array(5).fill("completed"));
  expect(await Promise.all(running.map(stateOf))).toEqual(["running", "running"]);
  expect(await Promise.all(ready.map(stateOf))).toEqual(["ready", "ready", "ready"]);
  expect(await Promise.all(waiting.map(stateOf))).toEqual(Array(3).fill("scheduled"));
  expect(await Promise.all(late.map(stateOf))).toEqual(["unknown", "unknown"]);
  expect((await restored.deadLetters()).map(({ id }) => id)).toEqual([dead?.id]);

  await restored.work([again.plain, again.slow]);
  await restored.resumeQueue("plain");
  for (const { id } of [...running, ...ready]) await restored.waitFor(id);

  const expected = ["ready-0", "ready-1", "ready-2", "running-0", "running-1"];
  expect(namesOf(again.runs)).toEqual(expected);
  for (const { name, key, attempt } of again.runs) {
    const first = ranBefore.find((run) => run.name === name);
    // The same key as in the first run: platforms that honour it do the work once.
    expect(key).toBe(first?.key);
    expect(attempt).toBe(name.startsWith("running") ? 2 : 1);
  }
  for (const { id } of running)
    expect((await restored.get(id))?.timeline).toMatchObject([
      { outcome: "lapsed" },
      { outcome: "completed" },
    ]);

  // A key given since the backup is free again; one from before is not.
  const [repeated] = await restored.enqueueMany(again.plain, named("late", 1), { key: "late-0" });
  expect(repeated?.existing).toBe(false);
  const [known] = await restored.enqueueMany(again.plain, named("ready", 1), { key: "ready-0" });
  expect(known).toMatchObject({ existing: true, id: ready[0]?.id });

  // Whoever kept the trail's head notices that its end is gone.
  const trail = await verifyAudit(restored.store.service.audit, keptHead);
  expect(trail).toMatchObject({ ok: false, problem: "the expected head is missing" });
  await restored.stop();
});
