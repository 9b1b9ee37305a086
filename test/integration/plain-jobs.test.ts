// Jobs that are like the one before are not looked at anew, but for their payload: whatever changes is seen all the
// same, and what goes wrong is answered all the same.

import { describe, expect, it } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

/** A job type of which several were enqueued already. */
async function familiar(millrace = instances.millrace) {
  const seen: unknown[] = [];
  const queue = newQueue();
  const job = defineJob({ type: queue, queue, run: ({ payload }) => void seen.push(payload) });
  for (let n = 0; n < 3; n++) await millrace.enqueue(job, n);
  return { job, queue, seen };
}

describe("a job like the one before", () => {
  it.each([
    [{ isActive: false }, "QUEUE_INACTIVE"],
    [{ capacity: 3 }, "QUEUE_FULL"],
    [{ rateLimit: { limit: 1, windowMs: 600_000 } }, "RATE_LIMITED"],
    [{ tenantCapacity: 1 }, "TENANT_FULL"],
  ])("meets its queue's new settings %j", async (settings, code) => {
    const { millrace } = instances;
    const { job, queue } = await familiar();
    await millrace.configureQueue(queue, settings as never);
    const enqueueAll = async () => {
      for (let n = 0; n < 3; n++) await millrace.enqueue(job, n);
    };
    expect(await refusal(enqueueAll())).toMatchObject({ code });
  });

  it("is refused for what its payload holds", async () => {
    const { millrace } = instances;
    const { job, queue } = await familiar();
    const refused = [{ password: "hunter22" }, { n: 1n }, { text: "x".repeat(300_000) }];
    for (const payload of refused)
      expect((await refusal(millrace.enqueue(job, payload as never))).code).toMatch(/^PAYLOAD_/);
    expect((await millrace.queues()).find(({ name }) => name === queue)?.counts.enqueued).toBe(3);
  });

  it("keeps the version that its payload says, and what its options say", async () => {
    const { millrace } = instances;
    const { job } = await familiar();
    const versioned = await millrace.enqueue(job, { payload_version: "2.0" } as never);
    const urgent = await millrace.enqueue(job, 1, { priority: "high" });
    const empty = await millrace.enqueue(job, undefined as never);
    expect((await millrace.get(versioned.id))?.meta).toEqual({ payloadVersion: "2.0" });
    expect((await millrace.get(urgent.id))?.weight).toBe(0);
    expect((await millrace.get(empty.id))?.payload).toBeNull();
    expect((await millrace.get((await millrace.enqueue(job, 2)).id))?.meta).toEqual({});
  });

  it("is told of, and refused after a stop", async () => {
    const millrace = await Millrace.connect({ databaseUrl: instances.url, logLevel: "silent" });
    const { job } = await familiar(millrace);
    const told: string[] = [];
    millrace.events.on("job.enqueued", ({ id }) => told.push(id));
    const { id } = await millrace.enqueue(job, 3);
    expect(told).toEqual([id]);
    await millrace.stop();
    expect(await refusal(millrace.enqueue(job, 4))).toMatchObject({ code: "STOPPED" });
  });

  it("is stored once and runs, whether its question or its answer was lost", async () => {
    const proxy = await TcpProxy.start(instances.url);
    const millrace = await instances.connect({ databaseUrl: proxy.url, leaseMs: 2_000 });
    const { job, seen } = await familiar(millrace);
    await millrace.work([job], { drainMs: 0 });
    await until("the first have run", () => seen.length === 3);
    for (const how of ["loseAnswer", "loseQuestion"] as const) {
      const text = `lost by ${how}`;
      const lost =
        how === "loseAnswer" ? proxy.loseAnswer("client", text) : proxy.loseQuestion(text);
      const { id } = await millrace.enqueue(job, text as never);
      await lost;
      await until("it has run", async () => (await millrace.get(id))?.state === "completed");
      expect(seen.filter((one) => one === text).length).toBeGreaterThan(0);
      const rows = await instances.query("select from millrace.history where payload::text = $1", [
        JSON.stringify(text),
      ]);
      expect(rows).toHaveLength(1);
    }
    await proxy.close();
  });

  // The last one: a tenant that has had settings is looked at from then on.
  it("meets its tenant's new settings", async () => {
    const { millrace } = instances;
    const { job } = await familiar();
    await millrace.tenants.configure("default", { capacity: 1 });
    const enqueueAll = async () => {
      for (let n = 0; n < 3; n++) await millrace.enqueue(job, n);
    };
    expect(await refusal(enqueueAll())).toMatchObject({ code: "TENANT_FULL" });
    await millrace.tenants.configure("default", { capacity: null });
    await enqueueAll();
  });
});
