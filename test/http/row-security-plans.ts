// What is looked up as the role of tenants goes through no more rows than without it.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "../../src/store/postgres/connection.ts";
import { createDeadLetterStore } from "../../src/store/postgres/dead-letter-search.ts";
import { readShare } from "../../src/store/postgres/item-share.ts";
import { findItem } from "../../src/store/postgres/items.ts";
import { searchJobs } from "../../src/store/postgres/job-search.ts";
import { findJobs } from "../../src/store/postgres/read.ts";
import { enterTenant, scoped } from "../../src/store/postgres/row-security.ts";
import { Explainer } from "../support/explain.ts";
import type { Http } from "../support/http.ts";

export function rowSecurityPlansSuite(http: Http, queueId: () => number): void {
  /** A tenant has 600 of 30,000 records. */
  const mostLookedAt = 2_500;
  let explainer: Explainer;
  beforeAll(async () => {
    await http.query(
      `insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
        attempt, max_attempts, crash_count, type, tenant, payload, reference, correlation_id)
      select millrace.new_job_id(), 'completed', now(), now(), q.id, 1, q.retention_days, 0, 1, 1, 0, 't',
        't' || n % 50, 'null', 'r' || n, 'c' || n
      from millrace.queue q cross join generate_series(1, 30000) n where q.id = $1`,
      [queueId()],
    );
    await http.query(
      `insert into millrace.dead_job (id, finished_at, created_at, queue_id, claim_no, weight, attempt, max_attempts,
        crash_count, type, tenant, payload, error_class, error_fingerprint, error_message)
      select millrace.new_job_id(), now(), now(), $1, 1, 0, 1, 1, 0, 't', 't' || n % 50, 'null', 'fatal', 'f', 'm'
      from generate_series(1, 2000) n`,
      [queueId()],
    );
    await http.query(
      `insert into millrace.job_label (tenant, name, value, job_id)
      select tenant, 'n', (random() * 1000)::int::text, id from millrace.history`,
    );
    await http.query("analyze millrace.history, millrace.dead_job, millrace.job_label");
    explainer = new Explainer(http.url, "force_generic_plan");
  });
  afterAll(() => explainer.close());

  test("of what is looked up go through no more than what is asked for, by an index", async () => {
    const [row] = await http.query<{ id: string }>(
      "select id from millrace.history where tenant = 't7' limit 1",
    );
    const id = row?.id ?? "";
    const asked: Record<string, (reader: Pick<Connection, "query">) => Promise<unknown>> = {
      "by id": (reader) => findJobs(reader as never, [id]),
      "an item": (reader) => findItem(reader as never, id),
      ...Object.fromEntries(
        [
          { tenant: "t7", reference: "r8" },
          { tenant: "t7", correlationId: "c8" },
          { tenant: "t7", key: "k" },
          { tenant: "t7", label: { name: "n", value: "7" } },
        ].map((filter) => [
          JSON.stringify(filter),
          (reader) => searchJobs(reader as never, filter as never, null, 50),
        ]),
      ),
      letters: (reader) => createDeadLetterStore(reader as never).list({ tenant: "t7" }, null, 50),
    };
    for (const [name, ask] of Object.entries(asked)) {
      const plans = await explainer.explain(async (connection) => {
        await connection.query({ name: "", text: "begin" });
        await connection.query(enterTenant, ["t7"]);
        await ask({
          query: (source, values) => connection.query(scoped(source), values),
        } as Connection);
        await connection.query({ name: "", text: "rollback" });
      });
      for (const plan of plans) {
        const names = plan.toString().matchAll(/"Relation Name": "((history|dead|job)_\w+)"/g);
        for (const table of new Set([...names].map(([, found = ""]) => found))) {
          const rows = plan.visits(table).reduce((sum, visit) => sum + visit.rows, 0);
          expect(rows, `${name} goes through ${table}: ${plan.text}`).toBeLessThan(mostLookedAt);
        }
      }
      expect(plans.length, name).toBeGreaterThan(1);
    }
  });

  test.each(["t7", "default"])("of the share of %s end where the walk may go", async (tenant) => {
    const share = async (connection: Connection, bound: number) => {
      const query: Connection["query"] = (source, values) =>
        connection.query(tenant === "default" ? source : scoped(source), values);
      const readers = { own: { query }, all: { query } } as never;
      await connection.query({ name: "", text: "begin" });
      if (tenant !== "default") await connection.query(enterTenant, [tenant]);
      const found = await readShare(readers, queueId(), tenant, bound);
      await connection.query({ name: "", text: "rollback" });
      return found;
    };
    const bound = 100;
    let found: Awaited<ReturnType<typeof readShare>> | undefined;
    const plans = await explainer.explain(async (connection) => {
      found = await share(connection, bound);
    });
    expect(found?.isComplete).toBe(false);
    const text = plans.map(String).join("");
    const names = text.matchAll(/"Relation Name": "((?:history|dead_job|job|scheduled_job)\w*)"/g);
    const rows = [...new Set([...names].map(([, name = ""]) => name))].map((table) =>
      plans.flatMap((plan) => plan.visits(table)).reduce((sum, visit) => sum + visit.rows, 0),
    );
    // One row more of each partition may be looked at to find the newest.
    expect(Math.max(...rows), text).toBeLessThanOrEqual(bound + 2);
    expect(rows.length).toBeGreaterThan(3);
    if (tenant === "default") return;
    const whole = await share(explainer.connection, 1_000);
    expect([whole.done, whole.failed, whole.isComplete]).toEqual([600, 40, true]);
  });
}
