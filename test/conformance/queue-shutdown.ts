import { expect, it } from "vitest";
import { anHour, drain, jobsOf, patienceMs, type QueueTopic, take } from "./queue-stage.ts";

export const shutdown: QueueTopic = (open) => {
  it("refuses every later enqueue", async () => {
    const queue = await (await open()).queue();
    await queue.shutdown();
    const closed = expect.objectContaining({ code: "QUEUE_CLOSED" });
    await expect(queue.enqueue("late")).rejects.toEqual(closed);
    await expect(queue.enqueueMany([{ job: "late" }])).rejects.toEqual(closed);
    expect(await queue.snapshot()).toMatchObject({ shutdown: true });
  });

  it("still serves what is ready, then answers null without waiting", async () => {
    const queue = await (await open()).queue();
    await queue.enqueueMany([{ job: "a" }, { job: "b", priority: "high" }]);
    await queue.shutdown();
    expect((await take(queue)).job).toBe("b");
    expect(jobsOf(await queue.dequeueMany({ max: 5, timeoutMs: anHour }))).toEqual(["a"]);
    expect(await queue.dequeue({ timeoutMs: anHour })).toBeNull();
    expect(await queue.dequeueMany({ max: 5, timeoutMs: anHour })).toEqual([]);
  });

  it("ends the takes that wait", async () => {
    const queue = await (await open()).queue();
    const takes = [queue.dequeue({ timeoutMs: anHour }), queue.dequeue({ timeoutMs: anHour })];
    const many = queue.dequeueMany({ max: 2, timeoutMs: anHour });
    await queue.shutdown();
    expect(await Promise.all(takes)).toEqual([null, null]);
    expect(await many).toEqual([]);
  });

  it("hands future items back, or keeps them for the next process", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueue("ready");
    await queue.enqueue("later", { delayMs: anHour, id: "x" });
    const back = await queue.shutdown();
    if (back.length > 0) {
      expect(back).toMatchObject([{ id: "x", job: "later", priority: "normal" }]);
      expect(await queue.snapshot()).toMatchObject({ ready: 1, scheduled: 0 });
    } else {
      const next = await stage.queue();
      expect(await next.snapshot()).toMatchObject({ ready: 1, scheduled: 1 });
    }
    expect(await drain(queue)).toEqual(["ready"]);
  });

  it("lets a taker settle what it holds", async () => {
    const queue = await (await open()).queue();
    await queue.enqueueMany(["a", "b", "c"].map((job) => ({ job })));
    const [a, b, c] = await queue.dequeueMany({ max: 3 });
    if (a === undefined || b === undefined || c === undefined) throw new Error("not taken");
    await queue.shutdown();
    expect(await queue.ack(a)).toBe(true);
    expect(await queue.bury(b, "broken")).toBe(true);
    expect(await queue.release(c)).toBe(true);
    expect(await queue.dequeue({ timeoutMs: patienceMs })).toMatchObject({ job: "c" });
    expect(jobsOf(await queue.dead())).toEqual(["b"]);
  });

  it("does nothing the second time", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("later", { delayMs: anHour });
    await queue.shutdown();
    expect(await queue.shutdown()).toEqual([]);
  });
};
