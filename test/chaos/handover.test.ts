import { afterEach, beforeEach, expect, test } from "vitest";
import { heardOf } from "../support/handovers.ts";
import { Trial } from "../support/trial.ts";
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
