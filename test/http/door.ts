import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export function doorSuite(): void {
  const http = useHttp();
  const post = (body: unknown, more = {}) => http.call("POST", "/api/jobs", { body, ...more });

  describe("flow control at the door", () => {
    test("a tenant at its capacity is answered 429, one call as a whole, and told which", async () => {
      const name = newQueue();
      await http.call("POST", "/api/queues", { body: { name, tenant_capacity: 2 } });
      const key = await http.key("producer", "bounded");
      const job = { type: "t", queue: name };
      const many = await post({ jobs: [job, job, job] }, { key });
      expect([many.status, many.body.code]).toEqual([429, "TENANT_FULL"]);
      expect((await post({ jobs: [job, job] }, { key })).status).toBe(201);
      const full = await post(job, { key });
      expect([full.status, full.body.code]).toEqual([429, "TENANT_FULL"]);
      expect(full.body.details).toEqual({
        ...{ limit: "tenant_in_queue", depth: 2, capacity: 2, wanted: 1 },
      });
      expect(full.headers.get("retry-after")).toBe("1");
      const other = await http.key("producer", "unbounded");
      expect((await post(job, { key: other })).status).toBe(201);
    });

    test("a rate that is used up is answered 429, with the seconds to wait", async () => {
      const queue = newQueue();
      const rate = { limit: 2, windowMs: 86_400_000 };
      await http.millrace.configureQueue(queue, { rateLimit: rate });
      const job = { type: "t", queue };
      for (let i = 0; i < 2; i++) expect((await post(job)).status).toBe(201);
      const refused = await post(job);
      expect([refused.status, refused.body.code]).toEqual([429, "RATE_LIMITED"]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3_600);
    });

    test("tenants take turns, whichever way their jobs came", async () => {
      const queue = newQueue();
      await http.millrace.configureQueue(queue, {});
      for (const tenant of ["deep", "small"]) {
        const key = await http.key("producer", tenant);
        await post({ jobs: Array(10).fill({ type: "turns", queue }) }, { key });
      }
      const order: string[] = [];
      const job = defineJob({
        ...{ type: "turns", queue },
        run: ({ job: { tenant } }) => void order.push(tenant),
      });
      await http.work([job], { concurrency: 1 });
      await until("all have run", () => order.length === 20);
      expect(new Set(order.slice(0, 2)).size).toBe(2);
    });
  });
}
