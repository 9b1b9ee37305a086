import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineJob, type TriggerOptions } from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

// So rare that only notices and due times can be why something happens.
const instances = useMillrace({ triggerMs: 3_600_000 });
const yearly = "0 0 1 1 *";

describe("a time trigger", () => {
  test("runs its job every second until it is disabled", async () => {
    const { triggers } = instances.millrace;
    const slots: string[] = [];
    const queue = newQueue();
    const tick = defineJob({
      type: "tick",
      queue,
      run: ({ job }) => slots.push(job.meta.slot ?? ""),
    });
    await instances.work([tick]);
    const made = await triggers.create({
      ...{ name: queue, type: "TIME", cron: "* * * * * *", job: tick },
    });
    expect(made).toMatchObject({
      tenant: "default",
      timeZone: "UTC",
      jobType: "tick",
      jobQueue: queue,
    });
    await until("three slots ran", () => slots.length >= 3);
    const off = await triggers.disable(made.id);
    expect(off).toMatchObject({ enabled: false, nextFireAt: null });
    const seconds = slots.map((slot) => Date.parse(slot) / 1000);
    expect(new Set(slots).size).toBe(slots.length);
    expect(seconds.every(Number.isInteger)).toBe(true);
    const after = await triggers.get(made.id);
    expect(after?.lastFiredAt?.getTime()).toBeGreaterThanOrEqual((seconds.at(-1) ?? 0) * 1000);
  });

  test("made in one process is fired by another at once", async () => {
    const other = await instances.connect();
    const queue = newQueue();
    const ran: string[] = [];
    await instances.work([defineJob({ type: "far", queue, run: ({ job }) => ran.push(job.id) })]);
    const options = { name: queue, type: "TIME", cron: "* * * * * *" } as const;
    const { id } = await other.triggers.create({ ...options, jobType: "far", jobQueue: queue });
    await until("it ran", () => ran.length > 0);
    await other.triggers.delete(id);
    expect(await other.triggers.get(id)).toBeNull();
    expect((await refusal(other.triggers.delete(id))).code).toBe("TRIGGER_NOT_FOUND");
  });
});

describe("a queue trigger", () => {
  test("hands items to its job as they arrive, and completes them with it", async () => {
    const { millrace } = instances;
    const [inbox, queue] = [newQueue(), newQueue()];
    const batches: string[][] = [];
    const sync = defineJob({
      type: "sync.batch",
      queue,
      payload: z.object({ target: z.string(), queue_item_ids: z.array(z.string()) }),
      run: ({ payload }) => batches.push(payload.queue_item_ids),
    });
    await instances.work([sync]);
    await millrace.triggers.create({
      ...{ name: inbox, type: "QUEUE", queue: inbox, batchSize: 10, onArrival: true },
      ...{ pollingIntervalMs: 86_400_000, job: sync, payload: { target: "crm" } },
    });
    const item = defineJob({ type: "item", queue: inbox });
    const ids = (await millrace.enqueueMany(item, Array(25).fill({ n: 1 }))).map(({ id }) => id);
    const items = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    expect(items.map(({ state }) => state)).toEqual(ids.map(() => "completed"));
    expect(batches.flat().sort()).toEqual([...ids].sort());
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(10);
    const [trigger] = await millrace.triggers.list({ name: inbox });
    const last = items.find(({ id }) => id === trigger?.lastProcessedItemId);
    expect(last?.id).toBe(ids.at(-1));
    expect(last?.result).toEqual({ job_id: trigger?.lastJobId });
  });

  test("lets the handler settle items one by one", async () => {
    const { millrace } = instances;
    const [inbox, queue] = [newQueue(), newQueue()];
    const split = defineJob({
      type: "split",
      queue,
      payload: z.object({ queue_item_ids: z.array(z.string()) }),
      async run({ payload, job }) {
        const [first = "", second = ""] = payload.queue_item_ids;
        await millrace.triggers.settleItem(job, first, { kind: "completed", result: "first" });
        await millrace.triggers.settleItem(job, second, { kind: "failed", error: new Error("no") });
      },
    });
    const item = defineJob({ type: "item", queue: inbox, maxAttempts: 1 });
    const made = await millrace.enqueueMany(item, [1, 2, 3]);
    await instances.work([split]);
    const options = { name: inbox, type: "QUEUE", queue: inbox, batchSize: 3, job: split } as const;
    await millrace.triggers.create(options);
    const ends = await Promise.all(made.map(({ id }) => millrace.waitFor(id)));
    expect(ends.map(({ state }) => state)).toEqual(["completed", "dead", "completed"]);
    expect(ends[0]?.result).toBe("first");
    expect(ends[1]?.error?.message).toBe("no");
  });
});

test("a trigger that fails says so, waits, and holds up nobody", async () => {
  const { millrace } = instances;
  const [full, open] = [newQueue(), newQueue()];
  const ran: string[] = [];
  await instances.work([
    defineJob({ type: "ok", queue: open, run: ({ job }) => ran.push(job.id) }),
  ]);
  await millrace.configureQueue(full, { capacity: 0 });
  const failures = [
    millrace.events.once("trigger.failed", (event) => event.name === full && event.failures === 1),
    millrace.events.once("trigger.failed", (event) => event.name === full && event.failures === 2),
  ];
  const common = { type: "TIME", cron: "* * * * * *", missedSlots: "last" } as const;
  const bad = await millrace.triggers.create({
    ...{ ...common, name: full, jobType: "ok", jobQueue: full },
  });
  const good = await millrace.triggers.create({
    ...{ ...common, name: open, jobType: "ok", jobQueue: open },
  });
  const first = await failures[0];
  expect(first).toMatchObject({ id: bad.id, tenant: "default", error: { code: "QUEUE_FULL" } });
  const stored = await millrace.triggers.get(bad.id);
  expect(stored).toMatchObject({ failures: 1, retryAt: first?.retryAt, lastFiredAt: null });
  expect(stored?.lastError).toMatchObject({ code: "QUEUE_FULL" });
  await until("the other one fires", () => ran.length > 1);
  const retryNow = () =>
    instances.query("update millrace.trigger set retry_at = now() where id = $1", [bad.id]);
  await retryNow();
  const second = await failures[1];
  const waits = [first, second].map((event) => event?.retryAt?.getTime() ?? 0);
  expect((waits[1] ?? 0) - (waits[0] ?? 0)).toBeGreaterThan(2_000);
  await millrace.configureQueue(full, { capacity: null });
  await retryNow();
  await until("it fires and is clear", async () => {
    const trigger = await millrace.triggers.get(bad.id);
    return trigger?.lastFiredAt !== null && trigger?.failures === 0 && trigger.lastError === null;
  });
  await millrace.triggers.delete(bad.id);
  await millrace.triggers.delete(good.id);
});

describe("what people say about triggers", () => {
  test("is kept, changed field by field, and listed", async () => {
    const { triggers } = instances.millrace;
    const [name, queue] = [newQueue(), newQueue()];
    const made = await triggers.create({
      ...{ name, tenant: "acme", type: "TIME", cron: yearly, timeZone: "Europe/Lisbon" },
      ...{ missedSlots: "all", maxCatchUp: 5, jobType: "x", jobQueue: queue, priority: "high" },
      ...{ payload: { a: 1 }, maxAttempts: 2, maxRuntimeMs: 1_000 },
    });
    const changed = await triggers.update(made.id, { name: `${name}-b`, payload: { a: 2 } });
    const { updatedAt: _, ...rest } = made;
    expect(changed).toMatchObject({ ...rest, name: `${name}-b`, payload: { a: 2 } });
    expect(await triggers.list({ tenant: "acme", name: `${name}-b` })).toEqual([changed]);
    const moved = await triggers.update(made.id, { cron: "0 12 24 12 *", jobQueue: "default" });
    expect(moved).toMatchObject({ cron: "0 12 24 12 *", jobQueue: "default", weight: 0 });
    expect(triggers.preview(moved, { count: 1 })).toEqual([moved.nextFireAt]);
    await triggers.delete(made.id);
  });

  test("is shown in advance", () => {
    const { triggers } = instances.millrace;
    const after = new Date("2026-10-31T12:00:00Z");
    const zone = { cron: "30 1 * * *", timeZone: "America/New_York" };
    const times = triggers.preview(zone, { count: 3, after }).map((time) => time.toISOString());
    expect(times).toEqual([
      "2026-11-01T05:30:00.000Z",
      "2026-11-02T06:30:00.000Z",
      "2026-11-03T06:30:00.000Z",
    ]);
    expect(triggers.preview({ cron: null })).toEqual([]);
  });

  const time = { type: "TIME", cron: yearly, jobType: "x" };
  const items = { type: "QUEUE", queue: "inbox", jobType: "x" };
  const governed = { ...time, job: defineJob({ type: "orders", category: "sync" }) };
  test.each([
    ["SCHEDULE_INVALID", { ...time, cron: "61 * * * *" }],
    ["SCHEDULE_INVALID", { ...time, cron: "0 0 30 2 *" }],
    ["SCHEDULE_INVALID", { ...time, timeZone: "Mars/Olympus" }],
    ["TRIGGER_INVALID", { ...time, cron: undefined }],
    ["TRIGGER_INVALID", { ...time, type: "SOMETIME" }],
    ["TRIGGER_INVALID", { ...time, batchSize: 2 }],
    ["TRIGGER_INVALID", { ...items, cron: yearly }],
    ["TRIGGER_INVALID", { ...time, missedSlots: "some" }],
    ["TRIGGER_INVALID", { ...time, retries: 2 }],
    ["TRIGGER_INVALID", { ...items, payload: "text" }],
    ["TRIGGER_INVALID", { ...items, jobQueue: "inbox" }],
    ["OPTION_INVALID", { ...items, batchSize: 0 }],
    ["OPTION_INVALID", { ...items, pollingIntervalMs: 10 }],
    ["OPTION_INVALID", { ...items, queue: "" }],
    ["OPTION_INVALID", { ...time, jobType: undefined }],
    ["OPTION_INVALID", { ...items, queue: undefined }],
    ["TRIGGER_INVALID", { ...time, enabled: 0 }],
    ["TRIGGER_INVALID", { ...items, onArrival: "yes" }],
    ["TRIGGER_INVALID", { ...time, job: { type: "x" } }],
    ["PAYLOAD_INVALID", { ...time, payload: { a: 10n } }],
    ["UNKNOWN_PRIORITY", { ...time, priority: "soonish" }],
    ["PAYLOAD_INVALID", { ...time, payload: { password: "hunter22222" } }],
    ["PAYLOAD_INVALID", { ...governed, payload: {} }],
  ])("is refused with %s, case %#", async (code, options) => {
    const { triggers } = instances.millrace;
    const given = { name: newQueue(), ...options } as unknown as TriggerOptions;
    expect((await refusal(triggers.create(given))).code).toBe(code);
    expect(await triggers.list({ name: given.name })).toEqual([]);
  });

  test("is refused when the job's own schema refuses it", async () => {
    const { triggers } = instances.millrace;
    const job = defineJob({ type: "strict", payload: z.object({ report: z.string() }) });
    const options = { name: newQueue(), type: "TIME", cron: yearly, job, payload: {} } as const;
    expect((await refusal(triggers.create(options))).code).toBe("PAYLOAD_INVALID");
  });

  test("is refused when the schema of the job it is changed to refuses it", async () => {
    const { triggers } = instances.millrace;
    const common = { name: newQueue(), type: "TIME", cron: yearly, jobType: "loose" } as const;
    const made = await triggers.create({ ...common, payload: { report: 7 } });
    const job = defineJob({ type: "strict", payload: z.object({ report: z.string() }) });
    const error = await refusal(triggers.update(made.id, { job }));
    expect(error.code).toBe("PAYLOAD_INVALID");
    expect(await triggers.get(made.id)).toMatchObject({ jobType: "loose", payload: { report: 7 } });
    const changes = { job, payload: { report: "weekly" } };
    expect(await triggers.update(made.id, changes)).toMatchObject({
      ...{ jobType: "strict", payload: { report: "weekly" } },
    });
    const gone = "00000000-0000-7000-8000-000000000000";
    expect((await refusal(triggers.update(gone, { job }))).code).toBe("TRIGGER_NOT_FOUND");
    await triggers.delete(made.id);
  });

  test("is checked by the job's schema as it is when it is stored, though others change it meanwhile", async () => {
    const { triggers } = instances.millrace;
    const common = { name: newQueue(), type: "TIME", cron: yearly, jobType: "loose" } as const;
    const made = await triggers.create({ ...common, payload: { report: "weekly" } });
    let others: Promise<unknown> | undefined;
    const payload = z.object({ report: z.string() }).refine(async () => {
      others ??= triggers.update(made.id, { payload: { report: 7 } });
      await others;
      return true;
    });
    const job = defineJob({ type: "strict", payload });
    expect((await refusal(triggers.update(made.id, { job }))).code).toBe("PAYLOAD_INVALID");
    expect(await triggers.get(made.id)).toMatchObject({ jobType: "loose", payload: { report: 7 } });
    await triggers.delete(made.id);
  });

  test("keeps type and tenant", async () => {
    const { triggers } = instances.millrace;
    const made = await triggers.create({
      name: newQueue(),
      type: "TIME",
      cron: yearly,
      jobType: "x",
    });
    const changes = { tenant: "globex" } as object;
    expect((await refusal(triggers.update(made.id, changes))).code).toBe("TRIGGER_INVALID");
    expect((await refusal(triggers.get("nonsense"))).code).toBe("TRIGGER_NOT_FOUND");
    await triggers.delete(made.id);
  });
});
