import { expect, it } from "vitest";
import { drain, jobsOf, type QueueTopic, take } from "./queue-stage.ts";

export const taking: QueueTopic = (open) => {
  it("serves no item twice while it is taken", async () => {
    const stage = await open();
    const [one, other] = [await stage.queue(), await stage.queue()];
    await one.enqueue("only");
    expect(await one.dequeue()).toMatchObject({ job: "only" });
    expect(await other.dequeue()).toBeNull();
    expect(await one.snapshot()).toMatchObject({ depth: 0, ready: 0, taken: 1 });
  });

  it("is done with an item that was acked, once", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("only");
    const item = await take(queue);
    expect(await queue.ack(item)).toBe(true);
    expect(await queue.ack(item)).toBe(false);
    expect(await queue.release(item)).toBe(false);
    expect(await queue.bury(item, "too late")).toBe(false);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0, dead: 0 });
  });

  it("puts a released item back where it was, and counts the attempts", async () => {
    const queue = await (await open()).queue();
    await queue.enqueueMany([{ job: "first" }, { job: "second" }]);
    const first = await take(queue);
    expect(await queue.release(first)).toBe(true);
    const again = await take(queue);
    expect(again).toMatchObject({ id: first.id, sequence: first.sequence, attempt: 2 });
    expect(await queue.release(again)).toBe(true);
    expect(await drain(queue)).toEqual(["first", "second"]);
  });

  it("refuses an old take of an item that was taken again since", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("only");
    const old = await take(queue);
    await queue.release(old);
    const current = await take(queue);
    expect(await queue.ack(old)).toBe(false);
    expect(await queue.release(old)).toBe(false);
    expect(await queue.bury(old, "stale")).toBe(false);
    expect(await queue.snapshot()).toMatchObject({ taken: 1, ready: 0, dead: 0 });
    expect(await queue.ack(current)).toBe(true);
  });

  it("takes batches in order, each item once, whoever takes", async () => {
    const stage = await open();
    const [producer, one, other] = [await stage.queue(), await stage.queue(), await stage.queue()];
    const jobs = Array.from({ length: 60 }, (_, i) => `job ${String(i).padStart(2, "0")}`);
    await producer.enqueueMany(jobs.map((job) => ({ job })));
    const batches = await Promise.all([
      one.dequeueMany({ max: 20 }),
      other.dequeueMany({ max: 20 }),
      one.dequeueMany({ max: 20 }),
    ]);
    for (const batch of batches) expect(jobsOf(batch)).toEqual([...jobsOf(batch)].sort());
    expect(batches.flatMap(jobsOf).sort()).toEqual(jobs);
  });

  it("purges what waits and leaves what is taken with its taker", async () => {
    const queue = await (await open()).queue();
    await queue.enqueueMany([{ job: "held" }, { job: "ready" }, { job: "later", delayMs: 60_000 }]);
    const held = await take(queue);
    expect(await queue.purge()).toBe(2);
    expect(await queue.purge()).toBe(0);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, ready: 0, scheduled: 0, taken: 1 });
    expect(await queue.release(held)).toBe(true);
    expect(await drain(queue)).toEqual(["held"]);
  });
};
