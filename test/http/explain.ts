// Why a job does not run, over HTTP; and that it tells a tenant nothing of others.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export function explainSuite(): void {
  const http = useHttp();
  const explain = async (id: string, key?: string) => {
    const more = key === undefined ? {} : { key };
    const { body } = await http.call("GET", `/api/jobs/${id}/explain`, more);
    return { ...body, reason: body.reasons?.[0] };
  };

  test("a delay is explained with its end, and what has ended with that", async () => {
    const body = { type: "t", queue: newQueue(), delay_ms: 3_600_000, tenant_id: "acme" };
    const { id } = (await http.call("POST", "/api/jobs", { body })).body;
    const job = (await http.call("GET", `/api/jobs/${id}`)).body;
    const told = await explain(id, await http.key("producer", "acme"));
    expect(told).toMatchObject({ job_id: id, state: "scheduled", running: false });
    expect(told.reasons).toHaveLength(1);
    expect(told.reason).toMatchObject({ code: "delayed", until: job.due_at, holders: [] });
    await http.call("POST", `/api/jobs/${id}/cancel`);
    expect((await explain(id)).reason.code).toBe("ended");
    const unknown = await http.call("GET", `/api/jobs/${randomUUID()}/explain`);
    expect([unknown.status, unknown.body.code]).toEqual([404, "JOB_NOT_FOUND"]);
  });

  test("who holds a limit is told to operators; a tenant hears of its own jobs only, and of no worker", async () => {
    const queue = newQueue();
    await http.millrace.configureQueue(queue, { concurrency: 2 });
    const gate = createGate();
    const held = defineJob({ type: "held", queue, run: () => gate.opened });
    const ofGlobex = await http.millrace.enqueue(held, {}, { tenant: "globex" });
    const ofAcme = await http.millrace.enqueue(held, {}, { tenant: "acme" });
    await http.work([held], { name: "worker-of-all", concurrency: 5 });
    await until("both run", async () => {
      const jobs = await http.millrace.store.find([ofGlobex.id, ofAcme.id]);
      return jobs.every(({ state }) => state === "running");
    });
    const waiting = await http.millrace.enqueue(held, {}, { tenant: "acme" });
    const all = await explain(waiting.id);
    expect(all.reason.code).toBe("concurrency");
    const ids = all.reason.holders.map(({ job_id }: { job_id: string }) => job_id);
    expect(ids.sort()).toEqual([ofGlobex.id, ofAcme.id].sort());
    expect(all.reason.holders[0].worker).toBe("worker-of-all");
    const acme = await http.key("staff", "acme");
    const own = await explain(waiting.id, acme);
    expect(own.reason).toMatchObject({
      code: "concurrency",
      holders: [{ job_id: ofAcme.id, worker: null }],
    });
    const running = await explain(ofAcme.id, acme);
    expect(running).toMatchObject({ state: "running", running: true });
    const texts = JSON.stringify([own, running]);
    expect(texts).not.toContain("worker-of-all");
    expect(texts).not.toContain(ofGlobex.id);
    gate.open();
  });

  test("how many others come first is not a tenant's to know", async () => {
    const queue = newQueue();
    const job = defineJob({ type: "turns", queue, run: () => {} });
    await http.millrace.enqueueMany(job, Array(7).fill({}), {
      tenant: "globex",
      priority: "high",
    });
    const { id } = await http.millrace.enqueue(job, {}, { tenant: "acme" });
    const gate = createGate();
    const block = defineJob({ type: "block", queue: newQueue(), run: () => gate.opened });
    const blocking = await http.millrace.enqueue(block, {});
    // It serves the queue and knows the type, and has no hand free.
    await http.work([job, block], { concurrency: 1, queues: [block.queue] });
    await until(
      "it is busy",
      async () => (await http.millrace.get(blocking.id))?.state === "running",
    );
    await http.query(
      "update millrace.lease set info = jsonb_set(info::jsonb, '{queues}', $1)::json",
      [JSON.stringify([queue])],
    );
    expect((await explain(id)).reason.message).toContain("7 jobs come before it");
    const told = (await explain(id, await http.key("producer", "acme"))).reason;
    expect(told).toMatchObject({ code: "turn", message: "Other jobs come before it." });
    gate.open();
  });
}
