// The trigger runner's statements with another queue's rows in front and no statistics.

import { afterAll, beforeAll, expect, test } from "vitest";
import { triggerSession } from "../../src/store/postgres/trigger-session.ts";
import { Explainer } from "../support/explain.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import { Stage } from "./stage.ts";
import { queueTrigger } from "./trigger-stage.ts";

const [crowdSize, batch] = [100_000, 20];
const tables = ["job", "scheduled_job", "claim"];
let opened: TestStore;
let stage: Stage;

beforeAll(async () => {
  opened = await openTestStore();
  stage = new Stage(opened);
  for (const table of tables)
    await stage.sql(`alter table millrace.${table} set (autovacuum_enabled = false)`);
  const crowd = await stage.queue();
  await stage.sql(
    `insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload)
    select gen_random_uuid(), n, now(), now(), $1, 5, 5, 'crowd', 'acme', '{}' from generate_series(1, $2::int) n`,
    [crowd, crowdSize],
  );
});
afterAll(() => stage.close());

test.each(["auto", "force_generic_plan", "force_custom_plan"])(
  "take, hold and end items by index: %s",
  async (mode) => {
    const explainer = new Explainer(opened.url, mode);
    const session = triggerSession({
      connection: explainer.connection,
      channel: "c",
      maxAttempts: 5,
      withPartitions: (body) => body(),
    });
    const trigger = await queueTrigger(stage, { batchSize: batch, onArrival: true });
    const round = async () => {
      await stage.put(...stage.jobs(trigger.queueId, batch));
      await session.due(10);
      await session.fire(trigger.id);
      await session.endBatches(10);
      const [job] = await stage.claim(trigger.jobQueueId);
      if (job !== undefined) await stage.complete([job]);
      await session.endBatches(10);
      await session.waitForNext();
    };
    // Often enough for "auto" to have settled on its plans.
    for (let i = 0; i < 6; i++) await round();
    const plans = await explainer.explain(round);
    const texts = plans.map(({ text }) => text).join("\n");
    for (const part of ["for update skip locked", "trigger_batch", "insert into"])
      expect(texts).toContain(part);
    for (const plan of plans) {
      for (const table of tables) {
        const story = `${plan.text}\n${plan}`;
        const visits = plan.visits(table);
        const seen = visits.reduce((sum, visit) => sum + visit.rows, 0);
        expect(plan.wholesaleJoins(table), story).toEqual([]);
        for (const { node } of visits) expect(node, story).toMatch(/Index|Tid/);
        expect(seen, story).toBeLessThanOrEqual(12 * batch);
      }
    }
    await explainer.close();
  },
);
