// Robots' leases and the reclaimer, where they meet.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { outcomeOfLapse } from "../../src/domain/outcome.ts";
import type { LapsedJob, LapsedLease, UpkeepSession } from "../../src/store/store.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

// No worker and no manager: nobody reclaims but the test.
const http = useHttp();
let session: UpkeepSession;
beforeAll(() => {
  session = http.millrace.store.upkeep();
});
afterAll(() => session.close());

async function lease(count: number) {
  const { id: queueId } = await http.millrace.configureQueue(newQueue(), {});
  const key = await http.key("robot");
  for (let n = 0; n < count; n++)
    await http.call("POST", "/api/queue-items", { key, body: { queue_id: queueId } });
  const next = () => http.call("GET", `/api/queue-items/next?queue_id=${queueId}`, { key });
  const items = [];
  for (let n = 0; n < count; n++) items.push((await next()).body);
  return { items, key, next };
}

const expire = (ids: readonly string[]) =>
  http.query("update millrace.claim set expires_at = now() - interval '1 s' where job_ids && $1", [
    ids,
  ]);

const lapsedOf = async (ids: readonly string[]): Promise<LapsedLease[]> =>
  (await session.findLapsed()).filter(({ jobs }) => jobs.some(({ id }) => ids.includes(id)));

const settle = (job: LapsedJob) =>
  session.settleLapsed(
    null,
    [
      {
        id: job.id,
        token: job.token,
        outcome: outcomeOfLapse(job, "charged") as never,
        timeline: job.timeline,
        charged: true,
      },
    ],
    randomUUID(),
  );

test("each robot's claim is judged alone: two that lapse at once are two crashes", async () => {
  const { items } = await lease(2);
  const ids = items.map(({ id }) => id);
  await expire(ids);
  const lapsed = await lapsedOf(ids);
  expect(lapsed.map(({ jobs }) => jobs.length)).toEqual([1, 1]);
  expect(lapsed.every(({ leaseId }) => leaseId === null)).toBe(true);
  expect(lapsed[0]?.jobs[0]?.worker).toBe("robot of all");
});

test("a renewal that comes first keeps the item, even while the reclaimer is at it", async () => {
  const { items } = await lease(1);
  const [item] = items;
  await expire([item.id]);
  const [lapsed] = await lapsedOf([item.id]);
  const client = new pg.Client({ connectionString: http.url });
  await client.connect();
  try {
    // A renewal that has not committed yet.
    await client.query("begin");
    await client.query(
      "update millrace.claim set expires_at = now() + interval '1 minute' where $1 = any (job_ids)",
      [item.id],
    );
    const settling = settle(lapsed?.jobs[0] as LapsedJob);
    const waiting =
      "select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'lapsed'";
    while ((await http.query(waiting)).length === 0);
    await client.query("commit");
    expect((await settling).size).toBe(0);
  } finally {
    await client.end();
  }
  expect(await http.millrace.get(item.id)).toMatchObject({ state: "running", crashCount: 0 });
});

test("a reclaim that comes first refuses the renewal and the settle", async () => {
  const { items, key } = await lease(1);
  const [item] = items;
  await expire([item.id]);
  const [lapsed] = await lapsedOf([item.id]);
  expect((await settle(lapsed?.jobs[0] as LapsedJob)).get(item.id)).toBe("retried");
  const body = { token: item.token };
  const renewed = await http.call("POST", `/api/queue-items/${item.id}/renew`, { key, body });
  expect([renewed.status, renewed.body.details]).toEqual([409, { status: "NEW" }]);
  const done = { ...body, status: "DONE" };
  const settled = await http.call("PUT", `/api/queue-items/${item.id}`, { key, body: done });
  expect([settled.status, settled.body.details]).toEqual([409, { status: "NEW" }]);
  const rows = await http.query("select from millrace.claim where $1 = any (job_ids)", [item.id]);
  expect(rows).toEqual([]);
});
