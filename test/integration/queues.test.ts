import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
const jobIn = (queue: string) =>
  defineJob({ type: "queue.job", queue, run: ({ payload }) => payload });

describe("a queue with a capacity", () => {
  it("refuses aloud what does not fit, and takes more when jobs have ended", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { capacity: 3 });
    const ids = [];
    for (const n of [1, 2, 3]) ids.push((await millrace.enqueue(job, n)).id);
    const error = await refusal(millrace.enqueue(job, 4));
    expect(error.code).toBe("QUEUE_FULL");
    expect(error.details).toEqual({ queue: job.queue, depth: 3, capacity: 3, wanted: 1 });
    const worker = await instances.work([job]);
    for (const id of ids) await millrace.result(id);
    await worker.stop();
    await millrace.enqueue(job, 4);
    await millrace.cancel((await millrace.enqueue(job, 5)).id);
    await millrace.enqueueMany(job, [6, 7]);
    expect(await enqueuedIn(millrace, job.queue)).toBe(7);
  });

  it("takes all jobs of one call or none, keyed or not, in or out of a transaction", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { capacity: 5 });
    const six = [1, 2, 3, 4, 5, 6];
    expect((await refusal(millrace.enqueueMany(job, six))).code).toBe("QUEUE_FULL");
    const keyed = millrace.enqueueMany(job, six, (n) => ({ key: `${job.queue}-${n}` }));
    expect((await refusal(keyed)).code).toBe("QUEUE_FULL");
    const tx = { query: () => Promise.reject(new Error("nothing may be sent")) };
    expect((await refusal(millrace.enqueueMany(job, six, { tx }))).code).toBe("QUEUE_FULL");
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
    const big = Array.from({ length: 1_500 }, (_, n) => n);
    await millrace.configureQueue(job.queue, { capacity: 1_400 });
    expect((await refusal(millrace.enqueueMany(job, big))).code).toBe("QUEUE_FULL");
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
    await millrace.enqueueMany(job, six);
  });

  it("answers a request that it has accepted before, although it is full by now", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { capacity: 2 });
    const keyOf = (n: unknown) => ({ key: `${job.queue}-${n}` });
    const first = await millrace.enqueueMany(job, [1, 2], keyOf);
    const again = first.map(({ id }) => ({ id, existing: true }));
    expect(await millrace.enqueue(job, 1, keyOf(1))).toEqual(again[0]);
    expect(await millrace.enqueueMany(job, [1, 2], keyOf)).toEqual(again);
    expect((await refusal(millrace.enqueue(job, 9, keyOf(1)))).code).toBe("IDEMPOTENCY_CONFLICT");
    expect((await refusal(millrace.enqueueMany(job, [1, 3], keyOf))).code).toBe("QUEUE_FULL");
    expect((await refusal(millrace.enqueue(job, 1))).code).toBe("QUEUE_FULL");
  });

  it("judges calls that are made together one by one", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { capacity: 10 });
    const calls = Array.from({ length: 25 }, (_, n) => millrace.enqueue(job, n));
    const answers = await Promise.allSettled(calls);
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
    expect(await enqueuedIn(millrace, job.queue)).toBe(10);
  });

  it("warns once when it becomes deep", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { warnDepth: 2 });
    const warned: number[] = [];
    const off = millrace.events.on("queue.deep", ({ queue, depth }) => {
      if (queue === job.queue) warned.push(depth);
    });
    for (const n of [1, 2, 3, 4, 5]) await millrace.enqueue(job, n);
    off();
    expect(warned).toEqual([3]);
  });
});

describe("a queue", () => {
  it("that is not active accepts nothing new, and knows what it has accepted", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const key = job.queue;
    const { id } = await millrace.enqueue(job, 0, { key });
    await millrace.configureQueue(job.queue, { isActive: false });
    expect((await refusal(millrace.enqueue(job, 1))).code).toBe("QUEUE_INACTIVE");
    expect((await refusal(millrace.enqueueMany(job, [1, 2]))).code).toBe("QUEUE_INACTIVE");
    expect(await millrace.enqueue(job, 0, { key })).toEqual({ id, existing: true });
    await millrace.configureQueue(job.queue, { isActive: true });
    await millrace.enqueue(job, 1);
    expect(await enqueuedIn(millrace, job.queue)).toBe(2);
  });

  it("that is paused accepts jobs and starts none until it is resumed", async () => {
    const { millrace } = instances;
    const paused = jobIn(newQueue());
    const open = jobIn(newQueue());
    const started: string[] = [];
    const run = (name: string) => () => void started.push(name);
    await millrace.configureQueue(paused.queue, {});
    await instances.work([
      { ...paused, run: run("paused") },
      { ...open, type: "other", run: run("open") },
    ]);
    expect((await millrace.pauseQueue(paused.queue)).paused).toBe(true);
    const { id } = await millrace.enqueue(paused, 1);
    await millrace.waitFor((await millrace.enqueue({ ...open, type: "other" }, 2)).id);
    await until("several polls later it still waits", async () => {
      expect(await millrace.get(id)).toMatchObject({ state: "ready" });
      await millrace.waitFor((await millrace.enqueue({ ...open, type: "other" }, 2)).id);
      return started.length >= 5;
    });
    expect(started).not.toContain("paused");
    expect((await millrace.resumeQueue(paused.queue)).paused).toBe(false);
    await millrace.waitFor(id);
    expect(started).toContain("paused");
    expect((await refusal(millrace.pauseQueue("nowhere"))).code).toBe("QUEUE_NOT_FOUND");
  });

  it("shows its settings and what has become of its jobs", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { description: "mine", maxAttempts: 1 });
    const [done, gone, bad] = await millrace.enqueueMany(job, [1, 2, "bad"]);
    await millrace.cancel(gone?.id ?? "");
    const run = ({ payload }: { payload: unknown }) => {
      if (payload === "bad") throw new Error("bad");
    };
    await instances.work([{ ...job, run }]);
    await millrace.waitFor(done?.id ?? "");
    expect(await millrace.waitFor(bad?.id ?? "")).toMatchObject({ state: "dead", maxAttempts: 1 });
    await millrace.enqueue(job, 3, { delayMs: 600_000 });
    const queue = (await millrace.queues()).find(({ name }) => name === job.queue);
    expect(queue).toMatchObject({ description: "mine", maxAttempts: 1, paused: false });
    expect(queue?.counts).toEqual({
      enqueued: 4,
      completed: 1,
      dead: 1,
      removed: 1,
      retried: 0,
      depth: 1,
    });
  });

  it("refuses settings that make no sense", async () => {
    const { millrace } = instances;
    const wrong = [
      { capacity: -1 },
      { warnDepth: 1.5 },
      { maxAttempts: 0 },
      { retentionDays: 0 },
      { keyTtlSeconds: 0 },
      { isActive: "yes" as never },
    ];
    for (const settings of wrong) {
      const error = await refusal(millrace.configureQueue(newQueue(), settings));
      expect(error.code).toBe("OPTION_INVALID");
    }
    expect((await refusal(millrace.configureQueue("", {}))).code).toBe("OPTION_INVALID");
  });
});
