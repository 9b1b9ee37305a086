import { expect, it } from "vitest";
import { Events } from "../../src/runtime/events.ts";
import { anHour, type QueueTopic, take } from "./queue-stage.ts";

export const capacity: QueueTopic = (open) => {
  const full = expect.objectContaining({ code: "QUEUE_FULL" });

  it("refuses what is over its capacity, ready and scheduled counted together", async () => {
    const queue = await (await open({ capacity: 3 })).queue();
    await queue.enqueueMany([{ job: "a" }, { job: "b", delayMs: anHour }]);
    await queue.enqueue("c");
    await expect(queue.enqueue("d")).rejects.toEqual(full);
    await expect(queue.enqueue("d", { delayMs: anHour })).rejects.toEqual(full);
    expect(await queue.snapshot()).toMatchObject({ depth: 3, ready: 2, scheduled: 1 });
  });

  it("takes a batch whole or not at all", async () => {
    const queue = await (await open({ capacity: 3 })).queue();
    await queue.enqueue("a");
    await expect(queue.enqueueMany(["b", "c", "d"].map((job) => ({ job })))).rejects.toEqual(full);
    expect(await queue.snapshot()).toMatchObject({ depth: 1 });
    await queue.enqueueMany(["b", "c"].map((job) => ({ job })));
    expect(await queue.snapshot()).toMatchObject({ depth: 3 });
  });

  it("refuses a whole batch for one bad option", async () => {
    const queue = await (await open()).queue();
    const batch = [{ job: "a" }, { job: "b", priority: "urgent" }];
    await expect(queue.enqueueMany(batch)).rejects.toMatchObject({ code: "UNKNOWN_PRIORITY" });
    await expect(queue.enqueue("b", { priority: "toString" })).rejects.toMatchObject({
      code: "UNKNOWN_PRIORITY",
    });
    expect(await queue.snapshot()).toMatchObject({ depth: 0 });
  });

  it("has room again when something was taken, and takes back what is released", async () => {
    const queue = await (await open({ capacity: 1 })).queue();
    await queue.enqueue("a");
    const item = await take(queue);
    await queue.enqueue("b");
    expect(await queue.release(item)).toBe(true);
    expect(await queue.snapshot()).toMatchObject({ depth: 2 });
    await expect(queue.enqueue("c")).rejects.toEqual(full);
  });

  it("answers for an id it has even when it is full", async () => {
    const queue = await (await open({ capacity: 1 })).queue();
    const first = await queue.enqueue("a", { id: "x" });
    expect(await queue.enqueue("a", { id: "x" })).toEqual(first);
  });

  it("warns once each time the depth crosses its mark", async () => {
    const events = new Events();
    const warnings: number[] = [];
    events.on("queue.deep", ({ depth, warnDepth }) => {
      expect(warnDepth).toBe(3);
      warnings.push(depth);
    });
    const queue = await (await open({ warnDepth: 3, events })).queue();
    await queue.enqueueMany([{ job: "a" }, { job: "b" }]);
    expect(warnings).toEqual([]);
    await queue.enqueue("c");
    await queue.enqueue("d");
    expect(warnings).toEqual([3]);
    const items = await queue.dequeueMany({ max: 2 });
    for (const item of items) await queue.ack(item);
    await queue.enqueueMany([{ job: "e" }, { job: "f" }]);
    expect(warnings).toEqual([3, 4]);
  });
};
