import { afterEach, beforeEach, expect, test } from "vitest";
import { count, runsOf } from "../support/ledger.ts";
import { Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

test("fault 12: completions that race the reclaimer end each run once", async () => {
  // Leases that are renewed when they are over, or just not: every renewal is a race.
  const connect = { leaseMs: 300, renewMs: 300, reclaimMs: 20 };
  const work = { concurrency: 4 };
  const processes = [await trial.start({ connect, work }), await trial.start({ connect, work })];
  const ids = await trial.enqueueMany(120, (i) => ({ kind: "deaf", ms: 20 + ((i * 37) % 300) }));
  // A machine with time to spare would win every race: one of them is held until it has lost some.
  const [stalled, other] = processes;
  await stalled?.writes("start");
  stalled?.signal("SIGSTOP");
  await other?.writes("job.lapsed");
  stalled?.signal("SIGCONT");
  await trial.drained();
  const ledger = await until("handlers end", () => {
    const lines = trial.ledger();
    return runsOf(lines).every((run) => run.ended) && lines;
  });
  // Otherwise nothing was tested.
  expect(count(ledger, "job.lapsed")).toBeGreaterThan(0);
  expect(count(ledger, "job.settle_refused")).toBeGreaterThan(0);
  const { rows } = await trial.db.query<{ id: string; rows: number; state: string }>(
    `select id, count(*)::int as rows, min(state) as state from (
      select id, state from millrace.history union all select id, state from millrace.dead_job
    ) ended group by id`,
  );
  expect(rows.map((row) => row.id).sort()).toEqual([...ids].sort());
  expect(rows.filter((row) => row.rows !== 1)).toEqual([]);
  const refused = ledger.filter((line) => line.what === "job.settle_refused");
  const free = new Set(["lapsed", "released"]);
  for (const { id, state } of rows) {
    const job = await trial.job(id);
    const tokens = job.timeline.map((entry) => entry.token);
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(job.timeline.at(-1)?.outcome).toBe(state === "completed" ? "completed" : "lapsed");
    // Whoever was refused had lapsed: no run both lapsed and completed.
    const lapses = job.timeline.filter((entry) => entry.outcome === "lapsed").length;
    const refusals = refused.filter((line) => line.job === id).length;
    expect(refusals).toBeLessThanOrEqual(lapses);
    // Each run started once, under a token of its own; one without a start had lapsed, or had waited too long.
    const started = trial.about(id, "start").map((line) => line.token);
    expect(new Set(started).size).toBe(started.length);
    expect(started.filter((token) => !tokens.includes(String(token)))).toEqual([]);
    const unstarted = job.timeline.filter((entry) => !started.includes(entry.token));
    const gone = unstarted.map((entry) => entry.outcome).filter((outcome) => !free.has(outcome));
    expect(gone).toEqual([]);
  }
  expect(processes.every((process) => !process.exited)).toBe(true);
});

test("fault 13: a reclaimer that does not know the job's type gives it back, never discards it", async () => {
  const special = [{ type: "special" }];
  const victim = await trial.start({ types: special });
  const id = await trial.enqueue({ kind: "long", ms: 600_000, once: true }, "special");
  await victim.writes("start");
  const stranger = await trial.start({ types: [{ type: "other" }] });
  await victim.kill();
  await stranger.writes("job.lapsed", (line) => line.job === id);
  const ready = await until("the job is ready", async () => {
    const job = await trial.job(id);
    return job.state === "ready" && job;
  });
  expect(ready).toMatchObject({ attempt: 1, crashCount: 1 });
  expect(stranger.of("start")).toEqual([]);
  await trial.start({ types: special });
  expect(await trial.end(id)).toMatchObject({ state: "completed", attempt: 2, crashCount: 1 });
});
