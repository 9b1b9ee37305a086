import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { defineJob, NonRetryableError, Snooze } from "../../src/index.ts";
import { createTestMillrace, type TestMillrace } from "../../src/testing.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
const newName = () => `b-${randomUUID().slice(0, 8)}`;
const soon = { baseMs: { retryable: 1, transient: 1 }, jitter: 0 };

describe("jobs of a platform, in virtual time", () => {
  let made: TestMillrace | undefined;
  afterEach(() => made?.stop());
  async function open(random = () => 0.5): Promise<TestMillrace> {
    made = await createTestMillrace({ random });
    return made;
  }

  it("wait while it is open and spend no attempts, and run when it is back", async () => {
    const { millrace, drain, advance } = await open();
    let isDown = true;
    let calls = 0;
    const charge = defineJob({
      ...{ type: "charge", platform: "stripe", maxAttempts: 2, retry: soon },
      run: () => {
        calls++;
        if (isDown) throw new Error("503");
        return "charged";
      },
    });
    await millrace.breakers.configure("stripe", { failureThreshold: 3 });
    const all = await millrace.enqueueMany(charge, [1, 2, 3, 4, 5, 6, 7, 8]);
    await drain([charge]);
    expect(calls).toBe(3);
    expect((await millrace.breakers.get("stripe"))?.state).toBe("OPEN");
    for (let hours = 0; hours < 3; hours++) {
      await advance(3_600_000);
      await drain([charge]);
    }
    // One probe for each time that the cool-down was over, and each of them failed.
    expect(calls).toBe(6);
    const jobs = await Promise.all(all.map(({ id }) => millrace.get(id)));
    const spent = jobs.map((job) => job?.attempt ?? 0).reduce((sum, one) => sum + one, 0);
    // Those that opened it have spent an attempt, and no probe has.
    expect(spent).toBe(3);
    isDown = false;
    await drain([charge], { advance: true });
    const ended = await Promise.all(all.map(({ id }) => millrace.get(id)));
    expect(ended.every((job) => job?.state === "completed")).toBe(true);
    const attempts = ended.map((job) => job?.attempt ?? 0).reduce((sum, one) => sum + one, 0);
    expect(attempts).toBe(calls - 3);
    expect((await millrace.breakers.get("stripe"))?.state).toBe("CLOSED");
  });

  it("outlive an outage that is longer than all their attempts, also alone", async () => {
    const { millrace, drain, advance } = await open();
    let calls = 0;
    let isDown = true;
    const job = defineJob({
      ...{ type: "alone", platform: "long", maxAttempts: 2, retry: soon },
      run: () => {
        calls++;
        if (isDown) throw new Error("503 of the day");
        return "done";
      },
    });
    await millrace.breakers.configure("long", { failureThreshold: 1 });
    const { id } = await millrace.enqueue(job, {}, { orderingKey: "one" });
    await drain([job]);
    for (let hours = 0; hours < 6; hours++) {
      await advance(3_600_000);
      await drain([job]);
    }
    expect(calls).toBe(7);
    const waiting = await millrace.get(id);
    expect(waiting).toMatchObject({ state: "scheduled", attempt: 1 });
    expect(waiting?.timeline.at(-1)).toMatchObject({ outcome: "snoozed", probes: 6 });
    expect(waiting?.timeline.at(-1)?.message).toContain("probe, and failed: 503 of the day");
    expect((await millrace.explain(id)).reason).toBe("breaker_open");
    isDown = false;
    await drain([job], { advance: true });
    expect(await millrace.get(id)).toMatchObject({ state: "completed", attempt: 2 });
  });

  it("spend nothing either when a handler lets the failure of a probe through", async () => {
    const { millrace, drain, advance } = await open();
    const platform = millrace.breaker("inner");
    const job = defineJob({
      ...{ type: "inner", platform: "outer", maxAttempts: 2, retry: soon },
      run: () =>
        platform.run(() => {
          throw new Error("503");
        }),
    });
    await millrace.breakers.configure("inner", { failureThreshold: 1 });
    const { id } = await millrace.enqueue(job, {});
    await drain([job]);
    for (let hours = 0; hours < 2; hours++) {
      await advance(3_600_000);
      await drain([job]);
    }
    const waiting = await millrace.get(id);
    expect(waiting).toMatchObject({ state: "scheduled", attempt: 1 });
    expect(waiting?.timeline.at(-1)).toMatchObject({ probes: 2 });
  });

  it("come back spread over time, the first of them when the cool-down ends", async () => {
    let drawn = 0;
    const { millrace, drain } = await open(() => (drawn++ % 100) / 100);
    const call = defineJob({ type: "call", platform: "spread", run: () => 1 });
    await millrace.breakers.configure("spread", { returnSpreadSeconds: 600 });
    await millrace.breakers.open("spread", "to see them wait");
    await millrace.enqueueMany(call, Array(60).fill({}));
    const { runs } = await drain([call]);
    expect(new Set(runs.map(({ outcome }) => outcome))).toEqual(new Set(["snoozed"]));
    const due = runs.map(({ job }) => (job.dueAt?.getTime() ?? 0) / 1_000).sort((a, b) => a - b);
    const [first = 0] = due;
    const inMinutes = new Set(due.map((at) => Math.floor((at - first) / 60)));
    expect(inMinutes.size).toBeGreaterThan(4);
    expect(Math.max(...due) - first).toBeGreaterThan(300);
    expect(runs.every(({ job }) => job.attempt === 0 && job.state === "scheduled")).toBe(true);
    expect(runs[0]?.job.timeline.at(-1)).toMatchObject({
      ...{ outcome: "snoozed", message: 'The breaker "spread" is open.' },
    });
  });

  it("that call through the same breaker inside are one call of it", async () => {
    const { millrace, drain, advance } = await open();
    let isDown = true;
    const job = defineJob({
      ...{ type: "nested", platform: "nested", retry: soon },
      run: () =>
        millrace.breaker("nested").run(() => {
          if (isDown) throw new Error("503");
          return "through";
        }),
    });
    await millrace.breakers.configure("nested", { failureThreshold: 2 });
    await millrace.enqueueMany(job, [1, 2]);
    await drain([job]);
    expect(await millrace.breakers.get("nested")).toMatchObject({ state: "OPEN", failures: 2 });
    isDown = false;
    await advance(120_000);
    const { runs } = await drain([job], { advance: true });
    expect(runs.at(-1)?.outcome).toBe("completed");
    expect((await millrace.breakers.get("nested"))?.state).toBe("CLOSED");
  });
});

describe("what a job of a platform says about it", () => {
  const failuresOf = async (name: string) =>
    (await instances.millrace.breakers.get(name))?.failures;

  async function end(options: Partial<Parameters<typeof defineJob>[0]>) {
    const platform = newName();
    const job = defineJob({ type: "say", queue: newQueue(), maxAttempts: 1, platform, ...options });
    await instances.millrace.breakers.configure(platform, { failureThreshold: 100 });
    await instances.work([job]);
    const { id } = await instances.millrace.enqueue(job, {});
    return { platform, job: await instances.millrace.waitFor(id), id };
  }

  it("a failure counts, also one that took too long", async () => {
    const failed = await end({
      run: () => {
        throw new Error("503");
      },
    });
    expect(await failuresOf(failed.platform)).toBe(1);
    const hung = await end({ maxRuntimeMs: 20, run: () => new Promise(() => {}) });
    expect(hung.job.error?.message).toContain("longer than");
    expect(await failuresOf(hung.platform)).toBe(1);
  });

  it("a clear no does not, nor what its classifier calls one", async () => {
    const no = await end({ run: () => Promise.reject(new NonRetryableError("unknown card")) });
    expect(no.job.state).toBe("dead");
    const own = await end({
      classify: () => "non_retryable",
      run: () => Promise.reject(new Error("404")),
    });
    expect([await failuresOf(no.platform), await failuresOf(own.platform)]).toEqual([0, 0]);
  });

  it("a cancelled run says nothing", async () => {
    const platform = newName();
    const queue = newQueue();
    let isRunning = false;
    const job = defineJob({
      ...{ type: "cancel.me", queue, platform },
      run: ({ signal }) =>
        new Promise((_, reject) => {
          isRunning = true;
          signal.addEventListener("abort", () => reject(new Error("aborted")));
        }),
    });
    await instances.work([job]);
    const { id } = await instances.millrace.enqueue(job, {});
    await until("it runs", () => isRunning);
    await instances.millrace.cancel(id);
    expect((await instances.millrace.waitFor(id)).state).toBe("cancelled");
    expect(await failuresOf(platform)).toBe(0);
  });

  it("nothing but the handler's end counts: a bad result is not the platform's", async () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const { platform, job } = await end({ run: () => circular });
    expect(job.error?.message).toContain("RESULT_INVALID");
    expect(await failuresOf(platform)).toBe(0);
  });
});

it("a refusal that a handler lets through puts its job off and spends no attempt", async () => {
  const { millrace } = instances;
  const name = newName();
  await millrace.breakers.configure(name, { openCooldownSeconds: 0.2, returnSpreadSeconds: 0 });
  await millrace.breakers.open(name, "for now");
  let runs = 0;
  const job = defineJob({
    ...{ type: "calls", queue: newQueue(), maxAttempts: 1 },
    run: async ({ attempt }) => {
      runs++;
      return millrace.breaker(name).run(() => `called at attempt ${attempt}`);
    },
  });
  await instances.work([job]);
  const { id } = await millrace.enqueue(job, {});
  await until("it was refused a few times", () => runs >= 3);
  await millrace.breakers.close(name, "enough");
  const ended = await millrace.waitFor(id);
  expect(ended).toMatchObject({ state: "completed", attempt: 1, result: "called at attempt 1" });
  expect(ended.timeline[0]).toMatchObject({ outcome: "snoozed" });
});

it("a snoozing handler neither opens nor closes anything", async () => {
  const platform = newName();
  let runs = 0;
  const job = defineJob({
    ...{ type: "snoozes", queue: newQueue(), platform },
    run: () => {
      if (++runs < 8) throw new Snooze(1, "not yet");
      return runs;
    },
  });
  await instances.work([job]);
  const { id } = await instances.millrace.enqueue(job, {});
  expect(await instances.millrace.result(id)).toBe(8);
  expect(await instances.millrace.breakers.get(platform)).toMatchObject({
    ...{ state: "CLOSED", failures: 0, openings: 0 },
  });
});
