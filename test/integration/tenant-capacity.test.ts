import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { defineJob, NonRetryableError, Snooze } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
let tenants = 0;
const newTenant = () => `tenant-${++tenants}`;
const jobIn = (queue: string) =>
  defineJob({ type: `in.${queue}`, queue, maxAttempts: 1, run: ({ payload }) => payload });

/** What the store has counted for a tenant. */
async function counted(tenant: string): Promise<number> {
  const [row] = await instances.query<{ jobs: number }>(
    "select coalesce(sum(jobs), 0)::int as jobs from millrace.tenant_count where tenant = $1",
    [tenant],
  );
  return row?.jobs ?? 0;
}

describe("a tenant with a capacity", () => {
  it("is refused what does not fit in all its queues together, and others are not", async () => {
    const { millrace } = instances;
    const tenant = newTenant();
    await millrace.tenants.configure(tenant, { capacity: 3 });
    const [one, two] = [jobIn(newQueue()), jobIn(newQueue())];
    const ids = [];
    for (const job of [one, two, two]) ids.push((await millrace.enqueue(job, 1, { tenant })).id);
    const error = await refusal(millrace.enqueue(one, 4, { tenant }));
    expect(error.code).toBe("TENANT_FULL");
    const counts = { depth: 3, capacity: 3, wanted: 1 };
    expect(error.details).toEqual({ limit: "tenant", tenant, ...counts });
    await millrace.enqueue(one, 1, { tenant: newTenant() });
    const worker = await instances.work([one, two]);
    for (const id of ids) await millrace.result(id);
    await worker.stop();
    expect(await counted(tenant)).toBe(0);
    await millrace.enqueueMany(one, [5, 6, 7], { tenant });
  });

  it("holds for the next call once it is set, however long this process has been at it", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const tenant = newTenant();
    await millrace.enqueue(job, 0, { tenant: newTenant() });
    for (const capacity of [2, 3]) {
      await millrace.tenants.configure(tenant, { capacity });
      const calls = [];
      for (let n = 0; n < 4; n++) {
        const call = millrace.enqueue(job, n, { tenant });
        calls.push(
          await call.then(
            () => "stored",
            ({ code }) => code,
          ),
        );
      }
      const room = capacity === 2 ? 2 : 1;
      expect(calls).toEqual([
        ...Array(room).fill("stored"),
        ...Array(4 - room).fill("TENANT_FULL"),
      ]);
    }
    expect(await counted(tenant)).toBe(3);
  });

  it("is bounded in one queue by the queue's tenantCapacity", async () => {
    const { millrace } = instances;
    const [job, other] = [jobIn(newQueue()), jobIn(newQueue())];
    const [tenant, second] = [newTenant(), newTenant()];
    await millrace.configureQueue(job.queue, { tenantCapacity: 2 });
    await millrace.enqueueMany(job, [1, 2], { tenant });
    const error = await refusal(millrace.enqueue(job, 3, { tenant }));
    expect(error.code).toBe("TENANT_FULL");
    const counts = { depth: 2, capacity: 2, wanted: 1 };
    expect(error.details).toEqual({
      ...{ limit: "tenant_in_queue", tenant, queue: job.queue },
      ...counts,
    });
    await millrace.enqueue(other, 1, { tenant });
    await millrace.enqueueMany(job, [1, 2], { tenant: second });
    expect((await refusal(millrace.enqueue(job, 3, { tenant: second }))).code).toBe("TENANT_FULL");
  });

  it("takes all jobs of one call or none, and answers what it has accepted before", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const tenant = newTenant();
    await millrace.tenants.configure(tenant, { capacity: 3 });
    const keyOf = (n: unknown) => ({ tenant, key: `${tenant}-${n}` });
    const four = [1, 2, 3, 4];
    expect((await refusal(millrace.enqueueMany(job, four, { tenant }))).details.wanted).toBe(4);
    expect((await refusal(millrace.enqueueMany(job, four, keyOf))).code).toBe("TENANT_FULL");
    const tx = { query: () => Promise.reject(new Error("nothing may be sent")) };
    expect((await refusal(millrace.enqueueMany(job, four, { tenant, tx }))).code).toBe(
      "TENANT_FULL",
    );
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
    const first = await millrace.enqueueMany(job, [1, 2, 3], keyOf);
    const again = first.map(({ id }) => ({ id, existing: true }));
    expect(await millrace.enqueueMany(job, [1, 2, 3], keyOf)).toEqual(again);
    expect(await counted(tenant)).toBe(3);
  });

  it("names the capacity that is full, the queue's or the tenant's", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const tenant = newTenant();
    await millrace.tenants.configure(tenant, { capacity: 2 });
    await millrace.configureQueue(job.queue, { capacity: 4, tenantCapacity: 3 });
    await millrace.enqueueMany(job, [1, 2], { tenant });
    expect((await refusal(millrace.enqueue(job, 3, { tenant }))).details.limit).toBe("tenant");
    await millrace.enqueueMany(job, [1, 2], { tenant: newTenant() });
    expect((await refusal(millrace.enqueue(job, 3, { tenant }))).code).toBe("QUEUE_FULL");
  });

  it("locks nothing that others need inside the caller's transaction", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const tenant = newTenant();
    await millrace.tenants.configure(tenant, { capacity: 10 });
    await millrace.enqueue(job, 0, { tenant });
    const client = new pg.Client({ connectionString: instances.url });
    await client.connect();
    await client.query("begin");
    await millrace.enqueue(job, 1, { tenant, tx: client });
    // Would wait for the open transaction if both counted in one row.
    await millrace.enqueue(job, 2, { tenant });
    expect(await counted(tenant)).toBe(2);
    await client.query("commit");
    await client.end();
    expect(await counted(tenant)).toBe(3);
  });

  it("is refused by the SQL function, too", async () => {
    const tenant = newTenant();
    const queue = newQueue();
    await instances.millrace.tenants.configure(tenant, { capacity: 1 });
    const enqueue = () =>
      instances.query("select millrace.enqueue('sql.job', '{}', $1, $2)", [queue, tenant]);
    await enqueue();
    await expect(enqueue()).rejects.toThrow(/TENANT_FULL/);
    expect(await counted(tenant)).toBe(1);
    const worker = await instances.work([defineJob({ type: "sql.job", queue, run: () => {} })]);
    await until("the job is counted out", async () => (await counted(tenant)) === 0);
    await worker.stop();
  });

  it("warns once when it becomes deep", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const tenant = newTenant();
    await millrace.tenants.configure(tenant, { warnDepth: 2 });
    const warned: number[] = [];
    const off = millrace.events.on("tenant.deep", (told) => {
      if (told.tenant === tenant) warned.push(told.depth);
    });
    for (const n of [1, 2, 3, 4, 5]) await millrace.enqueue(job, n, { tenant });
    off();
    expect(warned).toEqual([3]);
  });
});

describe("counting", () => {
  it("is exact whichever way a job ends, and counts neither retries nor snoozes", async () => {
    const { millrace } = instances;
    const tenant = newTenant();
    const queue = newQueue();
    await millrace.tenants.configure(tenant, { capacity: 1_000 });
    const fate = defineJob({
      type: "tenant.fate",
      queue,
      maxAttempts: 2,
      retry: { baseMs: { retryable: 3_600_000 } },
      run({ payload }) {
        if (payload === "dies") throw new NonRetryableError("at once");
        if (payload === "retries") throw new Error("later");
        if (payload === "snoozes") throw new Snooze(3_600_000);
      },
    });
    const ends = ["completes", "dies", "cancelled", "deleted", "retries", "snoozes"] as const;
    const sent = new Map<string, string>();
    for (const end of ends) sent.set(end, (await millrace.enqueue(fate, end, { tenant })).id);
    const { id: delayed } = await millrace.enqueue(fate, "delayed", { tenant, delayMs: 3_600_000 });
    expect(await counted(tenant)).toBe(7);
    await millrace.cancel(sent.get("cancelled") ?? "");
    await millrace.delete(sent.get("deleted") ?? "", "not wanted");
    expect(await counted(tenant)).toBe(5);
    // Last, since the upkeep of another test's worker may be quicker than a count.
    await millrace.enqueue(fate, "expires", { tenant, expiresInMs: 1 });
    await instances.work([fate]);
    // Left: one that is tried again, one that is put off, one that is delayed.
    await until("the others have ended", async () => (await counted(tenant)) === 3);
    const there = await instances.query(
      `select from millrace.job where tenant = $1 union all select from millrace.scheduled_job where tenant = $1`,
      [tenant],
    );
    expect(there).toHaveLength(3);
    await millrace.cancel(delayed);
    expect(await counted(tenant)).toBe(2);
    await millrace.reprocess(sent.get("dies") ?? "", "once more");
    await until("it dies again", async () => {
      const dead = await millrace.deadLetters({ tenant });
      return dead.length === 1 && (await counted(tenant)) === 2;
    });
  });

  it("survives the folding of old minutes", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const tenant = newTenant();
    await millrace.tenants.configure(tenant, { capacity: 5 });
    await millrace.enqueueMany(job, [1, 2], { tenant });
    await instances.query(
      "update millrace.tenant_count set minute = minute - interval '1 hour' where tenant = $1",
      [tenant],
    );
    await millrace.enqueue(job, 3, { tenant });
    const upkeep = millrace.store.upkeep();
    await upkeep.tidy();
    await upkeep.close();
    const rows = await instances.query(
      "select process, jobs::int from millrace.tenant_count where tenant = $1 order by process",
      [tenant],
    );
    expect(rows).toMatchObject([
      { process: "00000000-0000-0000-0000-000000000000", jobs: 2 },
      { jobs: 1 },
    ]);
    expect((await refusal(millrace.enqueueMany(job, [4, 5, 6], { tenant }))).details.depth).toBe(3);
  });

  it("overshoots by what is on its way in other processes, and no further", async () => {
    const { millrace } = instances;
    const tenant = newTenant();
    const queue = newQueue();
    const [processes, atOnce, capacity] = [3, 20, 200];
    await millrace.tenants.configure(tenant, { capacity });
    const program = fileURLToPath(new URL("../processes/capacity-producer.mjs", import.meta.url));
    const said = { url: instances.url, queue, tenant, atOnce };
    const children = Array.from({ length: processes }, () =>
      fork(program, [JSON.stringify(said)], { execArgv: [] }),
    );
    const ready = await Promise.all(children.map((child) => once(child, "message")));
    expect(ready).toHaveLength(processes);
    const told = Promise.all(children.map((child) => once(child, "message")));
    for (const child of children) child.send("go");
    const accepted = (await told).reduce((sum, [{ accepted }]) => sum + accepted, 0);
    expect(await enqueuedIn(millrace, queue)).toBe(accepted);
    expect(accepted).toBeGreaterThanOrEqual(capacity);
    expect(accepted).toBeLessThanOrEqual(capacity + (processes - 1) * atOnce);
    expect(await counted(tenant)).toBe(accepted);
  });
});
