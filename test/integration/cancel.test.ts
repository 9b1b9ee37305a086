import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defineJob, JobAborted, type JobContext } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

/** A job whose handler says when it has begun. */
function started(run: (context: JobContext<unknown>) => unknown, options = {}) {
  const begun = createGate();
  const runs: JobContext<unknown>[] = [];
  const job = defineJob({
    type: "cancel.me",
    queue: newQueue(),
    retry: () => 1,
    ...options,
    run: (context) => {
      runs.push(context);
      begun.open();
      return run(context);
    },
  });
  return { job, begun: begun.opened, runs };
}

describe("cancel", () => {
  it("ends a job that waits, ready or scheduled, and it never runs", async () => {
    const { millrace } = instances;
    const { job, runs } = started(() => "ran");
    const { id: ready } = await millrace.enqueue(job, 1);
    const { id: scheduled } = await millrace.enqueue(job, 2, { delayMs: 50 });
    const { id: other } = await millrace.enqueue(job, 3, { delayMs: 100 });
    for (const id of [ready, scheduled]) {
      expect(await millrace.cancel(id, "changed my mind")).toBe("cancelled");
      expect(await millrace.get(id)).toMatchObject({
        state: "cancelled",
        closedReason: "changed my mind",
        attempt: 0,
      });
      expect(await millrace.cancel(id)).toBe("ended");
    }
    await instances.work([job]);
    await millrace.waitFor(other);
    expect(runs.map(({ payload }) => payload)).toEqual([3]);
    expect((await refusal(millrace.result(ready))).details).toMatchObject({ state: "cancelled" });
  });

  it("aborts the handler's signal of a running job, which ends as cancelled", async () => {
    const { millrace } = instances;
    const { job, begun, runs } = started(({ signal }) => untilAborted(signal));
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    await begun;
    const aborted = millrace.events.once("job.aborted");
    expect(await millrace.cancel(id, "stop it")).toBe("requested");
    expect(await aborted).toMatchObject({ id, reason: "cancelled" });
    const ended = await millrace.waitFor(id);
    expect(ended).toMatchObject({ state: "cancelled", attempt: 1 });
    expect(ended.timeline.at(-1)).toMatchObject({ outcome: "cancelled" });
    expect(runs).toHaveLength(1);
    expect(runs[0]?.signal.reason).toBeInstanceOf(JobAborted);
    expect(runs[0]?.signal.reason.cause).toBe("cancelled");
  });

  it("reaches a worker of another instance", async () => {
    const { millrace } = instances;
    const elsewhere = await instances.connect({ renewMs: 14_000 });
    const { job, begun } = started(({ signal }) => untilAborted(signal));
    await elsewhere.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    await begun;
    expect(await millrace.cancel(id)).toBe("requested");
    expect(await millrace.waitFor(id)).toMatchObject({ state: "cancelled" });
  });

  it("loses against a completion that comes first", async () => {
    const { millrace } = instances;
    const gate = createGate();
    const { job, begun } = started(() => gate.opened.then(() => "finished anyway"));
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    await begun;
    const aborted = millrace.events.once("job.aborted");
    expect(await millrace.cancel(id)).toBe("requested");
    await aborted;
    gate.open();
    expect(await millrace.result(id)).toBe("finished anyway");
    expect(await millrace.cancel(id)).toBe("ended");
  });

  it("is not undone by a failure: what was to be cancelled is not retried", async () => {
    const { millrace } = instances;
    const gate = createGate();
    const { job, begun, runs } = started(async () => {
      await gate.opened;
      throw new Error("failed meanwhile");
    });
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    await begun;
    await millrace.cancel(id);
    gate.open();
    expect(await millrace.waitFor(id)).toMatchObject({ state: "cancelled" });
    expect(runs).toHaveLength(1);
  });

  it("may be asked for twice around the end of a run: what returned counts, and nothing runs for ever", async () => {
    const { millrace } = instances;
    const returned = new Set<string>();
    const { job } = started(async ({ job: { id } }) => {
      await setTimeout(2);
      returned.add(id);
    });
    await instances.work([job], { concurrency: 20 });
    const cancelTwice = async (_: unknown, i: number) => {
      const { id } = await millrace.enqueue(job, i);
      await setTimeout(i % 4);
      for (let times = 0; times < 2; times++) await millrace.cancel(id);
      const { state } = await millrace.waitFor(id);
      expect([id, state]).toEqual([id, returned.has(id) ? "completed" : "cancelled"]);
    };
    for (let round = 0; round < 40; round++)
      await Promise.all(Array.from({ length: 12 }, cancelTwice));
  });

  it("keeps a job from beginning that a worker has, but has not begun", async () => {
    const { millrace } = instances;
    const gate = createGate();
    const { job, begun, runs } = started(() => gate.opened);
    await instances.work([job]);
    await millrace.enqueue(job, "it runs");
    await begun;
    await millrace.pauseQueue(job.queue);
    const { id } = await millrace.enqueue(job, "it waits for the other");
    // As if its process had died twice.
    await instances.query("update millrace.job set crash_count = 2 where id = $1", [id]);
    await millrace.resumeQueue(job.queue);
    await until("a worker has it", async () => (await millrace.get(id))?.state === "running");
    await millrace.cancel(id);
    expect(await millrace.waitFor(id)).toMatchObject({ state: "cancelled" });
    expect(runs).toHaveLength(1);
    gate.open();
  });

  it("of a job that is not there says so", async () => {
    const { millrace } = instances;
    const nobody = millrace.cancel("01890000-0000-7000-8000-000000000000");
    expect((await refusal(nobody)).code).toBe("JOB_NOT_FOUND");
    expect((await refusal(millrace.cancel("'; drop table"))).code).toBe("JOB_NOT_FOUND");
  });
});

describe("maxRuntimeMs", () => {
  it("aborts the signal and retries, and the attempts spent make a dead letter", async () => {
    const { millrace } = instances;
    const { job, runs } = started(({ signal }) => untilAborted(signal), {
      maxRuntimeMs: 30,
      maxAttempts: 2,
    });
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    const ended = await millrace.waitFor(id);
    expect(ended).toMatchObject({ state: "dead", attempt: 2 });
    expect(runs).toHaveLength(2);
    expect(runs[0]?.signal.reason.cause).toBe("max_runtime");
  });

  it("counts a run that blocked its process for longer, and came back with a result, as a failure", async () => {
    const { millrace } = instances;
    const { job } = started(
      () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40),
      { maxRuntimeMs: 30, maxAttempts: 1 },
    );
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    const ended = await millrace.waitFor(id);
    expect(ended).toMatchObject({ state: "dead", attempt: 1 });
    expect(ended.error?.message).toContain("longer than 30 ms");
  });

  it("leaves a handler behind that ignores its signal", async () => {
    // Without a reclaimer at work: the worker is to say it itself.
    const millrace = await instances.connect({ reclaimMs: 600_000 });
    const never = createGate();
    const { job, runs } = started(() => (runs.length === 1 ? never.opened : "second try"), {
      maxRuntimeMs: 30,
    });
    await millrace.work([job], { drainMs: 0 });
    const { id } = await millrace.enqueue(job, 1);
    const ended = await millrace.waitFor(id);
    expect(ended).toMatchObject({ state: "completed", result: "second try", attempt: 2 });
    expect(ended.timeline[0]?.message).toContain("longer than 30 ms");
    never.open();
  });
});
