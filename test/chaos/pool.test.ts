import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { shortLease, Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
let locker: pg.Client;
beforeEach(async () => {
  trial = await Trial.create();
  locker = new pg.Client({ connectionString: trial.url });
  await locker.connect();
});
afterEach(async () => {
  await locker.end();
  await trial.close();
});

test("fault 24: while the pool's only connection hangs, leases are renewed and jobs complete", async () => {
  const process = await trial.start({ connect: { poolSize: 1 } });
  const id = await trial.enqueue({ kind: "long", ms: 2 * shortLease.leaseMs });
  await process.writes("start");
  // Nobody runs this one. A cancel goes through the pool and waits for whoever has locked the row.
  const locked = await trial.enqueue({ kind: "quick" }, "unknown");
  await locker.query("begin");
  await locker.query("select from millrace.job where id = $1 for update", [locked]);
  let answered = false;
  const cancelling = process.cancel(locked).finally(() => {
    answered = true;
  });
  const other = await trial.start();
  await until("the job ends", async () => (await trial.historyRows(id)) === 1);
  expect(answered).toBe(false);
  await locker.query("rollback");
  expect(await cancelling).toBe("cancelled");
  expect(await trial.job(id)).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
  expect(process.of("lease.lost")).toEqual([]);
  expect(other.of("job.lapsed")).toEqual([]);
  expect(trial.about(id, "start")).toHaveLength(1);
});
