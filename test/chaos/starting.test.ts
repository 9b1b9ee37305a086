// Backends that are terminated while somebody connects, or begins to work: each call succeeds or says so by its code,
// and the process lives. (An error event that nobody hears would end it, and fails this run.)

import { afterEach, beforeEach, expect, test } from "vitest";
import { defineJob, Millrace, MillraceError } from "../../src/index.ts";
import { Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

const job = defineJob({ type: "starting", run: () => {} });
const tries = 60;

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

/** Terminates what it meets of ours, one in `every`, until it is told to stop. */
function terminator(every: number) {
  let stopped = false;
  let met = 0;
  const done = (async () => {
    while (!stopped) {
      const { rowCount } = await trial.db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name like 'millrace%' and random() < 1.0 / $1`,
        [every],
      );
      met += rowCount ?? 0;
    }
  })();
  return async () => {
    stopped = true;
    await done;
    return met;
  };
}

const connect = () => Millrace.connect({ databaseUrl: trial.url, logLevel: "silent" });
const outcomeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "ok",
    (error) => (error instanceof MillraceError ? error.code : String(error)),
  );
const allowed = new Set(["ok", "DATABASE_UNAVAILABLE"]);

test("connecting succeeds, or says that the database is not there", async () => {
  const stop = terminator(7);
  const outcomes = new Set<string>();
  for (let n = 0; n < tries; n++)
    outcomes.add(await outcomeOf(connect().then((millrace) => millrace.stop())));
  expect(await stop()).toBeGreaterThan(0);
  expect(outcomes).toEqual(allowed);
});

test("so does beginning to work, which can be tried again and stopped", async () => {
  const outcomes = new Set<string>();
  let met = 0;
  for (let n = 0; n < tries; n++) {
    const millrace = await connect();
    const stop = terminator(20);
    const outcome = await outcomeOf(millrace.work([job]));
    met += await stop();
    outcomes.add(outcome);
    if (outcome !== "ok") {
      // A pooled connection that was terminated may show so only now.
      await until("it works", async () => (await outcomeOf(millrace.work([job]))) === "ok");
      await millrace.result((await millrace.enqueue(job, n)).id);
    }
    expect(await outcomeOf(millrace.stop())).toBe("ok");
  }
  expect(met).toBeGreaterThan(0);
  expect(outcomes).toEqual(allowed);
});
