import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { heardOf } from "../support/handovers.ts";
import { chaosJob, Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

test("a job that was handed to a worker which dies runs in another one, and none follows it", async () => {
  // Long enough between renewals for a worker that stands still to be believed for a while.
  const connect = { leaseMs: 4_000, renewMs: 2_000 };
  const doomed = await trial.start({ connect });
  const made = heardOf(trial.millrace, "handover.made");
  await until("a job is handed over", async () => {
    await trial.end(await trial.enqueue({ kind: "quick" }));
    return made.length > 0;
  });
  doomed.signal("SIGSTOP");
  const id = await trial.enqueue({ kind: "quick" });
  expect(made.at(-1)?.id).toBe(id);
  await doomed.kill();
  await until("its offer is gone", async () => (await trial.millrace.store.offers()).length === 0);
  const heir = await trial.start();
  const next = await trial.enqueue({ kind: "quick" });
  expect(await trial.end(next)).toMatchObject({ attempt: 1, crashCount: 0 });
  expect(await trial.end(id)).toMatchObject({ state: "completed", crashCount: 1 });
  expect(made.map((one) => one.id)).not.toContain(next);
  expect(trial.about(id, "start").map(({ proc }) => proc)).toEqual([heir.name]);
});

test("a stream that is handed to workers which are killed, stopped and frozen loses nothing", async () => {
  const work = { concurrency: 20 };
  const first = await trial.start({ work });
  const made = heardOf(trial.millrace, "handover.made");
  await until("a job is handed over", async () => {
    await trial.end(await trial.enqueue({ kind: "quick" }));
    return made.length > 0;
  });
  const second = await trial.start({ work });
  const ids: string[] = [];
  let sends = true;
  const send = async () => {
    for (; sends; await delay(10))
      ids.push((await trial.millrace.enqueue(chaosJob, { kind: "quick" })).id);
  };
  const sending = Promise.all(Array.from({ length: 10 }, send));
  const untilMore = async (what: string, count: number) => {
    const from = made.length;
    await until(what, () => made.slice(from).filter(({ jobs }) => jobs > 1).length >= count);
  };
  await untilMore("flushes are handed over", 3);
  await first.kill();
  await untilMore("flushes are handed to the other one", 3);
  const third = await trial.start({ work });
  second.signal("SIGSTOP");
  await trial.end(await trial.enqueue({ kind: "quick" }));
  second.signal("SIGCONT");
  await untilMore("flushes are handed over again", 3);
  third.askToStop();
  await third.ended();
  await trial.end(await trial.enqueue({ kind: "quick" }));
  sends = false;
  await sending;
  await trial.start({ work });
  await trial.drained();
  const ended = new Set<string>();
  const { rows } = await trial.db.query<{ id: string; state: string }>(
    "select id, state from millrace.history where id = any ($1)",
    [ids],
  );
  for (const { id, state } of rows) {
    expect(state).toBe("completed");
    expect(ended.has(id)).toBe(false);
    ended.add(id);
  }
  expect(ended.size).toBe(ids.length);
});
