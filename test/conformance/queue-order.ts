import { expect, it } from "vitest";
import { drain, jobsOf, type QueueTopic } from "./queue-stage.ts";

export const order: QueueTopic = (open) => {
  it("serves the lowest weight first, and inside a weight in the order of enqueuing", async () => {
    const queue = await (await open()).queue();
    const priorities = ["low", "normal", "high", "low", "normal", "high", "normal"];
    for (const [i, priority] of priorities.entries()) {
      await queue.enqueue(`${priority} ${i}`, { priority });
    }
    expect(await drain(queue)).toEqual([
      ...["high 2", "high 5"],
      ...["normal 1", "normal 4", "normal 6"],
      ...["low 0", "low 3"],
    ]);
  });

  it("keeps the order of a thousand items that were enqueued one by one and in batches", async () => {
    const queue = await (await open()).queue();
    const jobs = Array.from({ length: 1_000 }, (_, i) => `job ${i}`);
    for (const job of jobs.slice(0, 100)) await queue.enqueue(job);
    await queue.enqueueMany(jobs.slice(100, 900).map((job) => ({ job })));
    for (const job of jobs.slice(900)) await queue.enqueue(job);
    const served: string[] = [];
    for (;;) {
      const items = await queue.dequeueMany({ max: 64 });
      if (items.length === 0) break;
      expect(items.length).toBeLessThanOrEqual(64);
      served.push(...jobsOf(items));
      for (const item of items) await queue.ack(item);
    }
    expect(served).toEqual(jobs);
  });

  it("keeps one order for all handles", async () => {
    const stage = await open();
    const [producer, other, consumer] = [
      await stage.queue(),
      await stage.queue(),
      await stage.queue(),
    ];
    await producer.enqueue("first");
    await other.enqueue("second");
    await producer.enqueue("third");
    await other.enqueue("urgent", { priority: "high" });
    expect(await drain(consumer)).toEqual(["urgent", "first", "second", "third"]);
  });

  it("takes priorities of the user's own", async () => {
    const stage = await open({ priorities: { now: -100, normal: 0, idle: 100 } });
    const queue = await stage.queue();
    for (const priority of ["idle", "normal", "now"]) await queue.enqueue(priority, { priority });
    expect(await drain(queue)).toEqual(["now", "normal", "idle"]);
    await expect(queue.enqueue("x", { priority: "high" })).rejects.toMatchObject({
      code: "UNKNOWN_PRIORITY",
    });
  });

  it("is normal where no priority is given", async () => {
    const queue = await (await open()).queue();
    const item = await queue.enqueue("plain");
    expect(item).toMatchObject({ priority: "normal", weight: 5 });
  });

  it("tells of an item what the caller gave and what the queue made of it", async () => {
    const stage = await open();
    const queue = await stage.queue();
    const before = stage.now() - stage.slackMs;
    const given = { priority: "high", correlationId: "case 7", id: "a1" };
    const item = await queue.enqueue("report", given);
    const after = stage.now() + stage.slackMs;
    expect(item).toMatchObject({ ...given, job: "report", weight: 0, attempt: 0 });
    expect(item.enqueuedAt).toBeGreaterThanOrEqual(before);
    expect(item.enqueuedAt).toBeLessThanOrEqual(after);
    expect(item.readyAt).toBe(item.enqueuedAt);
    expect(Number.isSafeInteger(item.sequence)).toBe(true);
    const taken = await queue.dequeue();
    expect(taken).toEqual({ ...item, attempt: 1 });
  });

  it("makes an id where none is given, and leaves out a correlation that nobody gave", async () => {
    const queue = await (await open()).queue();
    const [one, two] = await queue.enqueueMany([{ job: "one" }, { job: "two" }]);
    expect(one?.id).not.toBe(two?.id);
    expect(one?.id.length).toBeGreaterThan(0);
    expect(one).not.toHaveProperty("correlationId");
    expect(one?.sequence).toBeLessThan(two?.sequence ?? 0);
  });

  it("carries any text as a job, the empty one too", async () => {
    const queue = await (await open()).queue();
    const jobs = ["", "ä€😀", "a\u0000b", '{"json":[1,2]}', "x".repeat(100_000)];
    for (const job of jobs) await queue.enqueue(job);
    expect(await drain(queue)).toEqual(jobs);
  });

  it("answers an empty batch with nothing", async () => {
    const queue = await (await open()).queue();
    expect(await queue.enqueueMany([])).toEqual([]);
    expect(await queue.snapshot()).toMatchObject({ depth: 0 });
  });
};
