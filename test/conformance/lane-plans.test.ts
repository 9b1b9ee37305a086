// The claim of controlled queues must not collapse either: with another queue's rows in front, a deep
// backlog of its own, and statistics from when every row was another queue's, every statement inside the
// function goes by index or row address and looks at few rows.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { claimLanes } from "../../src/store/postgres/lane-claim.ts";
import { Explainer } from "../support/explain.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import { laneQueue } from "./lanes.ts";
import { Stage } from "./stage.ts";

let opened: TestStore;
let stage: Stage;
const rows = 20_000;
const batch = 20;

beforeAll(async () => {
  opened = await openTestStore();
  stage = new Stage(opened);
  await stage.sql("alter table millrace.job set (autovacuum_enabled = false)");
  await stage.sql(
    `insert into millrace.job (id, created_at, queue_id, weight, max_attempts, type, tenant, payload, seq, ready_at)
    select gen_random_uuid(), now(), 1000000 + n, 5, 5, 'work', 'acme', '{}', n, now() from generate_series(1, 2000) n`,
  );
  await stage.sql("analyze");
  await fill(await stage.queue(), 0, 0);
});
afterAll(() => stage?.close());

const fill = (queueId: number, slot: number, lanes: number) =>
  stage.sql(
    `insert into millrace.job (id, created_at, queue_id, weight, max_attempts, type, tenant, payload, seq, ready_at, tenant_slot, lane)
    select gen_random_uuid(), now(), $1, 5, 5, 'work', 'acme', '{}', n, now(), $2::int,
      case when $3::int = 0 then 0 else 3 + 2 * (n % $3::int) end
    from generate_series(1, ${rows}) n`,
    [queueId, slot, lanes],
  );

it.each([
  { kind: "limited", settings: { concurrency: 1_000 }, lanes: 0 },
  { kind: "fair", settings: {}, lanes: 0 },
  { kind: "ordered", settings: { deadLetterBlocksKey: true }, lanes: 5_000 },
  { kind: "aged", settings: { ageingStepMs: 1_000 }, lanes: 0 },
])("the claim of a $kind queue looks at few rows", async ({ kind, settings, lanes }) => {
  const { id } = await laneQueue(stage, settings);
  if (lanes > 0) await stage.store.flow.useLanes(id);
  const slots = [0];
  for (const tenant of kind === "fair" ? ["a", "b", "c"] : [])
    slots.push(await stage.store.flow.slotOf(id, tenant));
  for (const slot of new Set(slots)) await fill(id, slot, lanes);
  const explainer = new Explainer(opened.url, "force_generic_plan", { nested: true });
  const leaseId = await stage.openLease();
  const claim = () =>
    explainer.explain(async (connection) => {
      const request = { claimId: randomUUID(), leaseId, queueId: id, limit: batch };
      const claimed = await claimLanes(connection, { ...request, types: null, suspect: true });
      expect(claimed.jobs).toHaveLength(batch);
    });
  await claim();
  const plans = await claim();
  expect(plans.length).toBeGreaterThan(5);
  for (const plan of plans) {
    for (const { node, rows: seen } of plan.visits("job")) {
      expect(["Index Scan", "Index Only Scan", "Tid Scan"], String(plan)).toContain(node);
      expect(seen, `${plan.text}\n${plan}`).toBeLessThanOrEqual(12 * batch);
    }
  }
  await explainer.close();
});
