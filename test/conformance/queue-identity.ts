import { expect, it } from "vitest";
import { anHour, drain, type QueueTopic, take } from "./queue-stage.ts";

export const identity: QueueTopic = (open) => {
  it("takes the same id for the same item while it is ready", async () => {
    const stage = await open();
    const [one, other] = [await stage.queue(), await stage.queue()];
    const first = await one.enqueue("first", { id: "x" });
    expect(await other.enqueue("second", { id: "x" })).toEqual(first);
    expect(await drain(one)).toEqual(["first"]);
  });

  it("takes the same id for the same item while it is scheduled", async () => {
    const queue = await (await open()).queue();
    const first = await queue.enqueue("first", { id: "x", delayMs: anHour });
    expect(await queue.enqueue("second", { id: "x" })).toEqual(first);
    expect(await queue.snapshot()).toMatchObject({ depth: 1, ready: 0, scheduled: 1 });
  });

  it("takes the same id for the same item while it is taken", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("first", { id: "x" });
    const taken = await take(queue);
    expect(await queue.enqueue("second", { id: "x" })).toMatchObject({
      job: "first",
      sequence: taken.sequence,
      attempt: 1,
    });
    expect(await queue.dequeue()).toBeNull();
    expect(await queue.ack(taken)).toBe(true);
  });

  it("takes the same id for the same item inside one batch", async () => {
    const queue = await (await open()).queue();
    const [one, two, three] = await queue.enqueueMany([
      { job: "one", id: "x" },
      { job: "two", id: "y" },
      { job: "three", id: "x" },
    ]);
    expect(three).toEqual(one);
    expect(two?.job).toBe("two");
    expect(await drain(queue)).toEqual(["one", "two"]);
  });

  it("takes the id for a new item once the old one is done with", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("first", { id: "x" });
    const old = await take(queue);
    await queue.ack(old);
    await queue.enqueue("second", { id: "x" });
    const current = await take(queue);
    expect(current).toMatchObject({ id: "x", job: "second", attempt: 1 });
    expect(await queue.ack(old)).toBe(false);
    expect(await queue.ack(current)).toBe(true);
  });

  it("takes the id for a new item once the old one was purged", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("first", { id: "x", delayMs: anHour });
    await queue.enqueue("other", { id: "y" });
    await queue.purge();
    await queue.enqueueMany([
      { job: "second", id: "x" },
      { job: "third", id: "y" },
    ]);
    expect(await drain(queue)).toEqual(["second", "third"]);
  });
};
