import { afterEach, beforeEach, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { mostAtOnce } from "../support/ledger.ts";
import { chaosJob, shortLease, Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

test("fault 1: a job whose process is killed mid-run completes elsewhere within the bound", async () => {
  const victim = await trial.start();
  const id = await trial.enqueue({ kind: "long", ms: 120_000, once: true });
  await victim.writes("start");
  const rescuer = await trial.start();
  const killedAt = await trial.now();
  await victim.kill();
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "completed", crashCount: 1, attempt: 2 });
  expect(job.result).toMatchObject({ by: rescuer.name });
  expect(job.timeline.map((entry) => entry.outcome)).toEqual(["lapsed", "completed"]);
  expect(await trial.historyRows(id)).toBe(1);
  // The database's clock on both ends; five seconds of slack for a machine that steals time.
  const bound = shortLease.leaseMs + shortLease.reclaimMs + 1_000 + 5_000;
  expect((job.startedAt?.getTime() ?? 0) - killedAt).toBeLessThan(bound);
});

test("fault 1: the jobs of a crash run one after another without waiting for the poll", async () => {
  const work = { concurrency: 20 };
  const victim = await trial.start({ work });
  const ids = await trial.enqueueMany(20, () => ({ kind: "long", ms: 120_000, once: true }));
  await until("all run", () => victim.of("start").length === ids.length);
  await victim.kill();
  const rescuer = await trial.start({ work, connect: { pollMs: 60_000 } });
  await trial.drained(40_000);
  expect(await trial.count("completed")).toBe(ids.length);
  expect(mostAtOnce(rescuer.lines())).toBe(1);
});

test("fault 2: a kill between the handler's end and the completion reruns it under the same key", async () => {
  const victim = await trial.start();
  const id = await trial.enqueue({ kind: "die_after", once: true }, "chaos", "invoice-7");
  await victim.ended();
  await trial.start();
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "completed", crashCount: 1 });
  expect(trial.about(id, "end")).toHaveLength(2);
  expect(trial.about(id, "start").map((line) => line.key)).toEqual(["invoice-7", "invoice-7"]);
});

test("fault 28: a job that kills its process three times is a dead letter, its neighbours complete", async () => {
  const work = { concurrency: 8 };
  const poison = await trial.enqueue({ kind: "exit" });
  const neighbours: string[][] = [];
  for (let crashes = 1; crashes <= 3; crashes++) {
    // Later ones still run when the lease of the last process lapses and the poison comes back.
    const ms = crashes === 1 ? 200 : 4_000;
    neighbours.push(await trial.enqueueMany(4, () => ({ kind: "long", ms })));
    const process = await trial.start({ work });
    await process.ended();
    expect(process.of("start").at(-1)?.job).toBe(poison);
    const unfinished = process.of("start").length - process.of("end").length;
    // The second time it begins beside them. The third time it waits for them, so that nobody else can have done it.
    if (crashes === 2) expect(unfinished).toBeGreaterThan(1);
    if (crashes === 3) expect(unfinished).toBe(1);
  }
  await trial.start({ work });
  const dead = await trial.end(poison);
  expect(dead).toMatchObject({ state: "dead", crashCount: 3, attempt: 3 });
  expect(dead.error?.message).toContain("died 3 times");
  await trial.drained();
  // The first crash charges everything its process held; from then on there is a suspect.
  for (const [round, ids] of neighbours.entries()) {
    for (const id of ids) {
      const job = await trial.job(id);
      expect(job.state).toBe("completed");
      expect(job.crashCount).toBeLessThanOrEqual(round === 0 ? 1 : 0);
      expect(job.attempt).toBe(job.crashCount + 1);
    }
  }
  expect(trial.about(poison, "start")).toHaveLength(3);
});

test("fault 28: a job that kills its process while it is being committed is stored, and counted", async () => {
  const mark = "while it is being committed";
  const first = await trial.start();
  // Only an idle worker takes a job with its enqueue.
  await until("a job was claimed by its flush", async () => {
    const id = await first.enqueue({ kind: "quick" });
    await trial.end(id);
    return trial.about(id, "start")[0]?.token === `${id}/1`;
  });
  void first.enqueue({ kind: "exit", once: true, mark }).catch(() => {});
  await first.ended();
  const { job: id, token } = first.of("start").at(-1) ?? {};
  if (id === undefined) throw new Error("it did not start");
  const second = await trial.start();
  expect(await trial.end(id)).toMatchObject({ state: "completed", attempt: 2, crashCount: 1 });
  expect(trial.about(id, "start").map(({ proc }) => proc)).toEqual(["p1", "p2"]);
  expect(second.of("start").at(-1)?.token).not.toBe(token);
  // Whichever way it came: most often by the flush, under its own name.
  expect((await trial.job(id)).payload).toMatchObject({ mark });
});

test("fault 28: who was there once when a process died is not charged for what others do", async () => {
  const poison = { kind: "exit", once: true } as const;
  // Takes back what the others leave, and runs none of it.
  await trial.start({ types: [{ type: "other" }] });
  const all = [await trial.enqueue(poison), await trial.enqueue({ kind: "quick" })];
  const innocent = all[1] ?? "";
  for (let crashes = 1; crashes <= 4; crashes++) {
    const process = await trial.start();
    await process.ended();
    await until("nothing is held any more", async () => {
      const states = await Promise.all(all.map(async (id) => (await trial.job(id)).state));
      return !states.includes("running");
    });
    // It comes before all that waits, and kills its process in turn.
    if (crashes < 4)
      all.push((await trial.millrace.enqueue(chaosJob, poison, { priority: "high" })).id);
  }
  await trial.start();
  await trial.drained();
  for (const id of all)
    expect(await trial.job(id)).toMatchObject({ state: "completed", crashCount: 1 });
  expect(trial.about(innocent, "end")).toHaveLength(1);
});

test("fault 28: a long job that was there once is not made a dead letter by another that kills its process", async () => {
  const long = await trial.enqueue({ kind: "long", ms: 6_000 });
  const first = await trial.start();
  await first.writes("start");
  await first.kill();
  const second = await trial.start();
  await second.writes("start", ({ job }) => job === long);
  const shared =
    "select from millrace.lease l join millrace.claim c on c.id = l.shared_claim where $1 = any (c.job_ids)";
  await until("it has company", async () => (await trial.db.query(shared, [long])).rowCount === 1);
  const poison = await trial.enqueue({ kind: "exit" });
  await second.ended();
  // Who of the two it was is not known; the next times it is.
  for (let died = 1; died < 3; died++) {
    const process = await trial.start();
    await process.ended();
    expect(process.of("start").at(-1)?.job).toBe(poison);
  }
  await trial.start();
  expect(await trial.end(poison)).toMatchObject({ state: "dead", crashCount: 3, attempt: 3 });
  expect(await trial.end(long)).toMatchObject({ state: "completed", crashCount: 2 });
  expect(trial.about(poison, "start")).toHaveLength(3);
});

test("fault 28: of two workers in one process only the job that kills it is charged beyond the first time", async () => {
  const besides = [{ type: "besides" }];
  const innocent = await trial.enqueue({ kind: "long", ms: 3_000 }, "besides");
  const first = await trial.start({ besides });
  await first.writes("start");
  const poison = await trial.enqueue({ kind: "exit" });
  await first.ended();
  const neighbours: string[] = [];
  for (let crashes = 2; crashes <= 3; crashes++) {
    const process = await trial.start({ besides });
    neighbours.push(await trial.enqueue({ kind: "long", ms: 3_000 }, "besides"));
    await process.ended();
    expect(process.of("start").at(-1)?.job).toBe(poison);
  }
  await trial.start({ besides });
  expect(await trial.end(poison)).toMatchObject({ state: "dead", crashCount: 3, attempt: 3 });
  expect(await trial.end(innocent)).toMatchObject({ state: "completed", crashCount: 1 });
  for (const id of neighbours)
    expect(await trial.end(id)).toMatchObject({ state: "completed", crashCount: 0 });
});

test("fault 1: a crash is none of a job's failures, however short its maxRuntimeMs", async () => {
  const types = [{ type: "chaos", maxRuntimeMs: 1_000, maxAttempts: 1 }];
  const limited = defineJob({ type: "chaos", maxRuntimeMs: 1_000, maxAttempts: 1 });
  await trial.start({ types: [{ type: "other" }] });
  const victim = await trial.start({ types });
  const { id } = await trial.millrace.enqueue(limited, { kind: "exit", once: true });
  await victim.ended();
  await trial.start({ types });
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "completed", attempt: 2, crashCount: 1 });
  expect(job.timeline.map((entry) => entry.outcome)).toEqual(["lapsed", "completed"]);
});
