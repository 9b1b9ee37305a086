// `queues`, `top` and `doctor` ask for the figures of all queues again and again: whatever lies in the
// tables, and whatever the statistics say, that goes by index and looks at few rows.

import { expect, test } from "vitest";
import { readQueueFigures } from "../../src/store/postgres/queue-figures.ts";
import { Explainer } from "../support/explain.ts";
import { openTestStore } from "../support/store.ts";
import { Stage } from "./stage.ts";

const rows = 20_000;

test("the figures of all queues are found without a scan", async () => {
  const opened = await openTestStore();
  const stage = new Stage(opened);
  try {
    await stage.sql("alter table millrace.job set (autovacuum_enabled = false)");
    const crowd = await stage.queue();
    const mine = await stage.queue();
    await stage.sql(
      `insert into millrace.job (id, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload, seq)
      select gen_random_uuid(), now(), now() - interval '1 h', $1, n % 3, 5, 'crowd', 'other', '{}', n
      from generate_series(1, ${rows}) n`,
      [crowd],
    );
    await stage.put(...stage.jobs(mine, 10));
    await stage.claim(mine, { limit: 4 });
    for (const statistics of ["none", "fresh"]) {
      if (statistics === "fresh") await stage.sql("analyze");
      const explainer = new Explainer(opened.url, "auto");
      let figures: Awaited<ReturnType<typeof readQueueFigures>> = [];
      const plans = await explainer.explain(async () => {
        figures = await readQueueFigures(explainer.connection);
      });
      await explainer.close();
      const [ofMine, ofCrowd] = [mine, crowd].map((id) => figures.find((one) => one.id === id));
      expect(ofMine).toMatchObject({ waiting: 6, running: 4 });
      expect(ofCrowd?.oldestReadySeconds).toBeGreaterThanOrEqual(3_600);
      expect(plans).toHaveLength(1);
      for (const plan of plans) {
        const visits = plan.visits("job");
        for (const { node } of visits) expect(["Index Scan", "Index Only Scan"]).toContain(node);
        expect(visits.reduce((sum, visit) => sum + visit.rows, 0)).toBeLessThan(100);
        expect(plan.buffers).toBeLessThan(1_000);
      }
    }
  } finally {
    await stage.close();
  }
});
