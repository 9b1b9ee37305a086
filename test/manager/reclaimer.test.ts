import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createReclaimer } from "../../src/manager/reclaimer.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Stage } from "../conformance/stage.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import { until } from "../support/until.ts";

let opened: TestStore;
let stage: Stage;
beforeAll(async () => {
  opened = await openTestStore();
  stage = new Stage(opened);
});
afterAll(() => stage.close());

const hold = async (jobs: number, options = {}) => {
  const [queueId, leaseId] = [await stage.queue(), await stage.openLease()];
  await stage.put(...stage.jobs(queueId, jobs, options));
  const held = await stage.claim(queueId, { leaseId, limit: jobs });
  return { leaseId, held, claimId: String(held[0]?.token.claimId) };
};

const taken = (ids: string[]) =>
  stage.sql("select from millrace.job where id = any($1) and claim_id is not null", [ids]);
const freed = (...ids: string[]) =>
  until("nobody holds them", async () => (await taken(ids)).length === 0);

function start(intervalMs: number) {
  const reclaimer = createReclaimer({
    ...{ session: opened.store.upkeep(), process: randomUUID(), intervalMs, leaseMs: 0 },
    ...{ isWanted: async () => true, onReclaimed: () => {} },
    ...{ clock: systemClock, random: Math.random, events: opened.events },
  });
  return reclaimer.start().then(() => reclaimer);
}

test("it goes on at once while there is more than one look finds", async () => {
  const { held, claimId } = await hold(700);
  // As robots hold them: one by one, each with an expiry of its own.
  await stage.sql(
    `with split as (
      update millrace.job set claim_id = gen_random_uuid() where claim_id = $1 returning id, claim_id
    )
    insert into millrace.claim (id, job_ids, robot, expires_at)
    select claim_id, array[id], 'robot', now() - interval '1 s' from split`,
    [claimId],
  );
  // It would look again after ten minutes.
  const reclaimer = await start(600_000);
  await freed(...held.map(({ id }) => id));
  await reclaimer.stop();
});

test("a job that somebody has locked holds up what the others held for a moment only", async () => {
  const leases = [await hold(1), await hold(1), await hold(1)];
  const [locked, ...others] = leases.flatMap(({ held }) => held.map(({ id }) => id));
  if (locked === undefined) throw new Error("nothing was claimed");
  const stranger = await stage.session();
  await stranger.query("begin");
  await stranger.query("select from millrace.job where id = $1 for update", [locked]);
  for (const { leaseId } of leases) await stage.endLease(leaseId);
  const reclaimer = await start(50);
  await freed(...others);
  expect(await taken([locked])).toHaveLength(1);
  await stranger.query("rollback");
  await freed(locked);
  await reclaimer.stop();
  await stranger.close();
});

test("a run that its living worker does not end is a failure, one lease after its limit", async () => {
  const { held, claimId } = await hold(1, { maxRuntimeMs: 1_000, maxAttempts: 1 });
  const id = String(held[0]?.id);
  await stage.sql("update millrace.job set started_at = now() - interval '1 h' where id = $1", [
    id,
  ]);
  await stage.sql("update millrace.claim set deadline = now() - interval '1 h' where id = $1", [
    claimId,
  ]);
  const reclaimer = await start(50);
  await freed(id);
  await reclaimer.stop();
  const job = await stage.find(id);
  expect(job).toMatchObject({ state: "dead", attempt: 1, crashCount: 0 });
  expect(job.error?.message).toContain("maxRuntimeMs");
});
