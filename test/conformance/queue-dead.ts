import { expect, it } from "vitest";
import { jobsOf, type QueueTopic, take } from "./queue-stage.ts";

export const deadList: QueueTopic = (open) => {
  it("keeps a buried item readable with its error, and serves it no more", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueue("broken", { priority: "high", correlationId: "case 7" });
    const item = await take(queue);
    const before = stage.now() - stage.slackMs;
    expect(await queue.bury(item, "no such account")).toBe(true);
    expect(await queue.bury(item, "again")).toBe(false);
    expect(await queue.dequeue()).toBeNull();
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0, dead: 1 });
    const [dead, ...others] = await queue.dead();
    expect(others).toEqual([]);
    expect(dead).toMatchObject({
      ...{ id: item.id, job: "broken", priority: "high", weight: 0 },
      ...{ attempt: 1, correlationId: "case 7", error: "no such account" },
    });
    expect(dead?.diedAt).toBeGreaterThanOrEqual(before);
    expect(dead?.diedAt).toBeLessThanOrEqual(stage.now() + stage.slackMs);
  });

  it("lists the oldest death first, up to a limit", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueueMany(["a", "b", "c"].map((job) => ({ job })));
    const items = await queue.dequeueMany({ max: 3 });
    for (const item of items.reverse()) {
      await queue.bury(item, `error of ${item.job}`);
      await stage.advance(2);
    }
    expect(jobsOf(await queue.dead())).toEqual(["c", "b", "a"]);
    expect(jobsOf(await queue.dead({ limit: 2 }))).toEqual(["c", "b"]);
    expect(await queue.dead({ limit: 0 })).toEqual([]);
  });

  it("requeues a dead item behind the others, with its attempts forgotten", async () => {
    const queue = await (await open()).queue();
    await queue.enqueueMany([{ job: "first" }, { job: "second" }]);
    const first = await take(queue);
    await queue.bury(first, "broken");
    expect(await queue.requeue(first.id)).toBe(true);
    expect(await queue.requeue(first.id)).toBe(false);
    expect(await queue.dead()).toEqual([]);
    const second = await take(queue);
    expect(second.job).toBe("second");
    const again = await take(queue);
    expect(again).toMatchObject({ id: first.id, job: "first", attempt: 1 });
    expect(again.sequence).toBeGreaterThan(second.sequence);
  });

  it("refuses a take from before the death, however often it is requeued", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("broken");
    const old = await take(queue);
    await queue.bury(old, "broken");
    await queue.requeue(old.id);
    const current = await take(queue);
    expect(current.attempt).toBe(old.attempt);
    expect(await queue.ack(old)).toBe(false);
    expect(await queue.release(old)).toBe(false);
    expect(await queue.ack(current)).toBe(true);
  });

  it("requeues nothing that is not dead", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("alive", { id: "x" });
    expect(await queue.requeue("x")).toBe(false);
    await take(queue);
    expect(await queue.requeue("x")).toBe(false);
    expect(await queue.requeue("never seen")).toBe(false);
    expect(await queue.snapshot()).toMatchObject({ taken: 1, ready: 0, dead: 0 });
  });

  it("wakes a waiting take with a requeued item", async () => {
    const stage = await open();
    const [queue, consumer] = [await stage.queue(), await stage.queue()];
    await queue.enqueue("broken");
    const item = await take(queue);
    await queue.bury(item, "broken");
    const taken = consumer.dequeue({ timeoutMs: 20_000 });
    await queue.requeue(item.id);
    expect(await taken).toMatchObject({ id: item.id, attempt: 1 });
  });

  it("purges no dead item", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("broken");
    await queue.bury(await take(queue), "broken");
    expect(await queue.purge()).toBe(0);
    expect(await queue.snapshot()).toMatchObject({ dead: 1 });
  });
};
