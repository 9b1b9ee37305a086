import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { NonRetryableError, RateLimitedError } from "../../src/domain/error-class.ts";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import { QueueWorker } from "../../src/queue/queue-worker.ts";
import { Events } from "../../src/runtime/events.ts";
import { ManualClock } from "../conformance/queue-clock.ts";
import { createGate } from "../support/gate.ts";
import { until } from "../support/until.ts";

const fail = () => {
  throw new Error("broken");
};

describe("a queue worker", () => {
  it("runs every job and acks it", async () => {
    const queue = new MemoryQueue<number>();
    const seen: number[] = [];
    const worker = new QueueWorker({ queue, handler: ({ job }) => seen.push(job) });
    await worker.start();
    await queue.enqueueMany([{ job: 1 }, { job: 2 }, { job: 3, priority: "high" }]);
    await until("all ran", () => seen.length === 3);
    await worker.stop();
    expect(seen).toEqual([3, 1, 2]);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0, dead: 0 });
    expect(worker.lastExceptions).toEqual([]);
  });

  it("runs as many at once as it may, and no more", async () => {
    const queue = new MemoryQueue<number>();
    const gate = createGate();
    let running = 0;
    let most = 0;
    const handler = async () => {
      most = Math.max(most, ++running);
      await gate.opened;
      running--;
    };
    const worker = new QueueWorker({ queue, handler, concurrency: 3 });
    await queue.enqueueMany(Array.from({ length: 10 }, (_, job) => ({ job })));
    await worker.start();
    await until("three run", () => running === 3);
    expect(await queue.snapshot()).toMatchObject({ ready: 7, taken: 3 });
    gate.open();
    await queue.shutdown();
    await worker.finished;
    expect(most).toBe(3);
  });

  it("finishes what it holds when it is stopped, and takes nothing more", async () => {
    const queue = new MemoryQueue<string>();
    const gate = createGate();
    const done: string[] = [];
    const handler = async ({ job }: { job: string }) => {
      await gate.opened;
      done.push(job);
    };
    const worker = new QueueWorker({ queue, handler, concurrency: 2 });
    await queue.enqueue("held");
    await worker.start();
    await until("one is held", async () => (await queue.snapshot()).taken === 1);
    let isStopped = false;
    const stopped = worker.stop().then(() => {
      isStopped = true;
    });
    await queue.enqueue("waiting");
    await turn();
    expect(isStopped).toBe(false);
    gate.open();
    await stopped;
    expect(done).toEqual(["held"]);
    expect(await queue.snapshot()).toMatchObject({ ready: 1, taken: 0 });
  });

  it("ends its wait at once when it is stopped, and can be started again", async () => {
    const queue = new MemoryQueue<string>();
    const seen: string[] = [];
    const options = { queue, handler: ({ job }: { job: string }) => seen.push(job) };
    const worker = new QueueWorker({ ...options, pollTimeoutMs: 3_600_000 });
    await worker.start();
    await worker.start();
    await worker.stop();
    await worker.stop();
    await worker.start();
    await queue.enqueue("later");
    await until("it ran", () => seen.length === 1);
    await worker.stop();
  });

  it("ends by itself when the queue was shut down and is drained", async () => {
    const queue = new MemoryQueue<number>();
    let runs = 0;
    const worker = new QueueWorker({ queue, handler: () => ++runs, concurrency: 2 });
    await queue.enqueueMany(Array.from({ length: 50 }, (_, job) => ({ job })));
    await worker.start();
    await queue.shutdown();
    await worker.finished;
    expect(runs).toBe(50);
  });

  it("retries after the delay that the error's class asks for", async () => {
    const clock = new ManualClock();
    const queue = new MemoryQueue<string>({ clock });
    const events = new Events();
    const delays: number[] = [];
    events.on("item.failed", ({ delayMs }) => delays.push(delayMs));
    const handler = ({ job }: { job: string }) => {
      if (job === "limited") throw new RateLimitedError("slow down", { retryAfterMs: 7_000 });
      fail();
    };
    const worker = new QueueWorker({ queue, handler, clock, events, random: () => 0.5 });
    await worker.start();
    await queue.enqueue("plain");
    await queue.enqueue("limited");
    await clock.advance(1);
    expect(delays).toEqual([2_000, 7_000]);
    expect(await queue.snapshot()).toMatchObject({ scheduled: 2, taken: 0 });
    await clock.advance(2_000);
    expect(delays).toEqual([2_000, 7_000, 4_000]);
    const stopped = worker.stop();
    await clock.advance(1);
    await stopped;
  });

  it("buries an item after its last attempt; requeued, it has all its attempts again", async () => {
    const clock = new ManualClock();
    const queue = new MemoryQueue<string>({ clock });
    let attempts = 0;
    const handler = () => {
      attempts++;
      fail();
    };
    const worker = new QueueWorker({ queue, handler, clock, maxAttempts: 3 });
    await worker.start();
    const { id } = await queue.enqueue("hopeless");
    await clock.advance(60_000);
    expect(attempts).toBe(3);
    expect(await queue.dead()).toMatchObject([{ id, attempt: 3, error: "broken" }]);
    await queue.requeue(id);
    await clock.advance(60_000);
    expect(attempts).toBe(6);
    await worker.stop();
  });

  it("buries at once what cannot be retried", async () => {
    const queue = new MemoryQueue<string>();
    const handler = () => {
      throw new NonRetryableError("no such account");
    };
    const worker = new QueueWorker({ queue, handler });
    await worker.start();
    await queue.enqueue("hopeless");
    await until("it is dead", async () => (await queue.snapshot()).dead === 1);
    await worker.stop();
    expect(await queue.dead()).toMatchObject([{ attempt: 1, error: "no such account" }]);
  });

  it("keeps the last exceptions, each with its report's id, and no more than it is told to", async () => {
    const queue = new MemoryQueue<{ report_id?: string | number }>();
    const handler = () => {
      throw new TypeError("not a number");
    };
    const worker = new QueueWorker({ queue, handler, maxAttempts: 1, keepExceptions: 2 });
    await queue.enqueueMany([{ job: {} }, { job: { report_id: "r7" } }, { job: {}, id: "i9" }]);
    await worker.start();
    await until("all are dead", async () => (await queue.snapshot()).dead === 3);
    await worker.stop();
    const what = { error: "not a number", type: "TypeError" };
    expect(worker.lastExceptions).toEqual([
      { report_id: "r7", ...what },
      { report_id: "i9", ...what },
    ]);
  });

  it("gives each job a scope of its own and releases it, whatever happens", async () => {
    const queue = new MemoryQueue<string>();
    const released: string[] = [];
    let scopes = 0;
    const worker = new QueueWorker({
      queue,
      maxAttempts: 1,
      scope: () => {
        const name = `scope ${++scopes}`;
        return { name, release: () => released.push(name) };
      },
      handler: ({ job, scope }) => {
        released.push(`${job} in ${scope.name}`);
        if (job === "bad") fail();
      },
    });
    await queue.enqueueMany([{ job: "good" }, { job: "bad" }, { job: "good" }]);
    await worker.start();
    await queue.shutdown();
    await worker.finished;
    expect(released).toEqual([
      ...["good in scope 1", "scope 1", "bad in scope 2", "scope 2"],
      ...["good in scope 3", "scope 3"],
    ]);
  });

  it.each([
    ["Symbol.asyncDispose", (done: () => void) => ({ [Symbol.asyncDispose]: async () => done() })],
    ["Symbol.dispose", (done: () => void) => ({ [Symbol.dispose]: done })],
    ["dispose", (done: () => void) => ({ dispose: done })],
  ])("releases a scope by its %s", async (_, make) => {
    const queue = new MemoryQueue<string>();
    let count = 0;
    const scope = () => make(() => count++);
    const worker = new QueueWorker({ queue, scope, handler: fail, maxAttempts: 1 });
    await queue.enqueue("x");
    await worker.start();
    await queue.shutdown();
    await worker.finished;
    expect(count).toBe(1);
  });

  it("counts a scope that cannot be made as a failure of the job", async () => {
    const queue = new MemoryQueue<string>();
    const worker = new QueueWorker({ queue, scope: fail, handler: () => {}, maxAttempts: 1 });
    await queue.enqueue("x");
    await worker.start();
    await queue.shutdown();
    await worker.finished;
    expect(await queue.dead()).toMatchObject([{ error: "broken" }]);
  });

  it("survives a scope, a classifier and a policy that fail, and says so", async () => {
    const queue = new MemoryQueue<string>();
    const events = new Events();
    const faults: unknown[] = [];
    events.on("service.failed", ({ error }) => faults.push(error));
    const worker = new QueueWorker({
      ...{ queue, events, handler: fail, classifier: fail, retryPolicy: () => Number.NaN },
      scope: () => ({ dispose: fail }),
    });
    await queue.enqueue("x");
    await worker.start();
    await until("it is released", async () => (await queue.snapshot()).scheduled === 1);
    await worker.stop();
    // The scope's, the classifier's and the policy's.
    expect(faults).toHaveLength(3);
  });

  it("waits for a queue that fails to come back, and settles then what it ran meanwhile", async () => {
    const clock = new ManualClock();
    const queue = new MemoryQueue<string>({ clock });
    const { ack } = queue;
    let refusals = 3;
    queue.ack = async (item) => {
      if (refusals-- > 0) throw new Error("gone");
      return ack.call(queue, item);
    };
    let runs = 0;
    const worker = new QueueWorker({ queue, clock, handler: () => ++runs });
    await worker.start();
    await queue.enqueue("x");
    await clock.advance(10_000);
    expect(runs).toBe(1);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0 });
    await worker.stop();
  });
});
