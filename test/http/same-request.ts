// Under one idempotency key there is one request: all that it asks for.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { type Answer, useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

export function sameRequestSuite(): void {
  const http = useHttp();

  async function queue(): Promise<number> {
    const body = { name: newQueue(), tenant_id: "acme" };
    return (await http.call("POST", "/api/queues", { body })).body.id;
  }
  const told = ({ status, body }: Answer) => [status, body?.code];
  const post = (path: string, body: unknown, key: string) =>
    http.call("POST", path, { body, headers: { "idempotency-key": key } });
  const conflict = [409, "IDEMPOTENCY_CONFLICT"];
  const job = (n: number, more: object = {}) => ({ type: "t", payload: { n }, ...more });

  test("of many jobs is of all of them together", async () => {
    const key = randomUUID();
    const jobs = [job(1), job(2)];
    const first = await post("/api/jobs", { jobs }, key);
    expect(first.status).toBe(201);
    const again = await post("/api/jobs", { jobs }, key);
    expect(again.status).toBe(200);
    expect(again.body.jobs.map(({ id }: { id: string }) => id)).toEqual(
      first.body.jobs.map(({ id }: { id: string }) => id),
    );
    const count = async () => (await http.query("select id from millrace.job")).length;
    const before = await count();
    for (const other of [
      { jobs: [...jobs, job(3)] },
      { jobs: [job(1)] },
      { jobs: [job(2), job(1)] },
      { jobs: [job(1), job(2, { priority: "high" })] },
      job(1),
    ])
      expect(told(await post("/api/jobs", other, key))).toEqual(conflict);
    expect(await count()).toBe(before);
    const single = randomUUID();
    expect((await post("/api/jobs", job(1), single)).status).toBe(201);
    expect(told(await post("/api/jobs", { jobs: [job(1)] }, single))).toEqual(conflict);
  });

  test("of many jobs of several tenants is of all of them in each tenant", async () => {
    const key = randomUUID();
    const jobs = [job(1, { tenant_id: "acme" }), job(2, { tenant_id: "globex" })];
    expect((await post("/api/jobs", { jobs }, key)).status).toBe(201);
    expect((await post("/api/jobs", { jobs }, key)).status).toBe(200);
    expect(told(await post("/api/jobs", { jobs: jobs.toReversed() }, key))).toEqual(conflict);
    const moved = [jobs[0], job(2, { tenant_id: "acme" })];
    expect(told(await post("/api/jobs", { jobs: moved }, key))).toEqual(conflict);
  });

  test("of one job covers all that is asked for, and not where it comes from", async () => {
    const key = randomUUID();
    const asked = job(1, { reference: "r", priority: "high", delay_ms: 60_000, max_attempts: 3 });
    const first = await post("/api/jobs", { ...asked, correlation_id: "c-1" }, key);
    expect(first.status).toBe(201);
    const again = await post("/api/jobs", { ...asked, correlation_id: "c-2" }, key);
    expect([again.status, again.body.id]).toEqual([200, first.body.id]);
    for (const other of [{ reference: "s" }, { priority: "low" }, { delay_ms: 1 }])
      expect(told(await post("/api/jobs", { ...asked, ...other }, key))).toEqual(conflict);
  });

  test("of an item covers its reference and its priority", async () => {
    const key = randomUUID();
    const item = { queue_id: await queue(), payload: 1, reference: "INV-1", priority: 3 };
    const first = await post("/api/queue-items", item, key);
    expect(first.status).toBe(201);
    const again = await post("/api/queue-items", item, key);
    expect([again.status, again.body.id]).toEqual([200, first.body.id]);
    for (const other of [{ reference: "INV-2" }, { priority: 4 }, { delay_ms: 1 }])
      expect(told(await post("/api/queue-items", { ...item, ...other }, key))).toEqual(conflict);
    const plain = { queue_id: item.queue_id, payload: 2 };
    const second = randomUUID();
    expect((await post("/api/queue-items", plain, second)).status).toBe(201);
    const said = await post("/api/queue-items", { ...plain, priority: 0 }, second);
    expect(said.status).toBe(200);
  });
}
