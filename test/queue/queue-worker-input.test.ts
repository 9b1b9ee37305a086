// What a queue worker makes of odd errors and senseless options.

import { describe, expect, it } from "vitest";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import { QueueWorker } from "../../src/queue/queue-worker.ts";
import { until } from "../support/until.ts";

const fail = () => {
  throw new Error("broken");
};

describe("what a handler throws", () => {
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable(new Error("gone"), {});
    revoke();
    return proxy;
  };
  const withGetter = (name: string) =>
    Object.defineProperty(new Error("odd"), name, { get: fail }) as unknown;
  const odd = ["code", "name", "message", "stack"].map((name) => withGetter(name));
  const things = [...odd, revoked(), undefined, null, Symbol("x"), 5n];

  it.each([...things.keys()])("never ends the worker (%i)", async (nth) => {
    const thrown = things[nth];
    const queue = new MemoryQueue<string>();
    const seen: string[] = [];
    const handler = ({ job }: { job: string }) => {
      if (job === "odd") throw thrown;
      seen.push(job);
    };
    const worker = new QueueWorker({ queue, handler, maxAttempts: 1 });
    await queue.enqueueMany([{ job: "odd" }, { job: "next" }]);
    await worker.start();
    await until("the next one runs", () => seen.length === 1);
    await worker.stop();
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0, dead: 1 });
    expect(worker.lastExceptions).toHaveLength(1);
  });

  it("is retried also when the source of randomness is broken", async () => {
    for (const random of [() => Number.NaN, fail]) {
      const queue = new MemoryQueue<string>();
      const worker = new QueueWorker({ queue, handler: fail, random });
      await queue.enqueue("a");
      await worker.start();
      await until("it waits for its retry", async () => (await queue.snapshot()).scheduled === 1);
      await worker.stop();
    }
  });
});

describe("a queue worker's options", () => {
  it("are refused when they make no sense", () => {
    const queue = new MemoryQueue<number>();
    const handler = () => {};
    const wrong = [
      { queue: undefined },
      { queue: {} },
      { handler: "run" },
      { scope: {} },
      { concurrency: 0 },
      { concurrency: 1.5 },
      { pollTimeoutMs: 0 },
      { pollTimeoutMs: -1 },
      { pollTimeoutMs: Number.NaN },
      { maxAttempts: 0 },
      { keepExceptions: -1 },
    ];
    for (const options of wrong) {
      const make = () => new QueueWorker({ queue, handler, ...(options as object) });
      expect(make, JSON.stringify(options)).toThrow(/must be|is needed/);
    }
  });

  it("leave a trace of a scope that could not be released, and the job is done", async () => {
    const queue = new MemoryQueue<number>();
    const scope = () => ({ release: fail });
    const worker = new QueueWorker({ queue, handler: () => {}, scope });
    await queue.enqueue(1, { id: "x" });
    await worker.start();
    await queue.shutdown();
    await worker.finished;
    expect(worker.lastExceptions).toEqual([{ report_id: "x", error: "broken", type: "Error" }]);
    expect(await queue.snapshot()).toMatchObject({ taken: 0, dead: 0 });
  });
});
