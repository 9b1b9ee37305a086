import { expect, it } from "vitest";
import { anHour, drain, type QueueTopic, take } from "./queue-stage.ts";

export const delays: QueueTopic = (open) => {
  it("serves nothing before it is due", async () => {
    const queue = await (await open()).queue();
    const item = await queue.enqueue("later", { delayMs: anHour });
    expect(item.readyAt - item.enqueuedAt).toBe(anHour);
    expect(await queue.dequeue()).toBeNull();
    expect(await queue.dequeueMany({ max: 10 })).toEqual([]);
    expect(await queue.snapshot()).toMatchObject({ depth: 1, ready: 0, scheduled: 1 });
  });

  it("never lets a future item of high priority stand in the way of a ready one", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("future", { priority: "high", delayMs: anHour });
    await queue.enqueue("present", { priority: "low" });
    expect(await drain(queue)).toEqual(["present"]);
  });

  it("serves an item once it is due", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueue("soon", { delayMs: 200 });
    await stage.advance(200 + stage.slackMs);
    expect(await queue.snapshot()).toMatchObject({ ready: 1, scheduled: 0 });
    expect((await take(queue)).job).toBe("soon");
  });

  it("puts what has fallen due where its weight and its sequence belong", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueue("first", { delayMs: 150 });
    await queue.enqueue("urgent", { priority: "high", delayMs: 100 });
    await queue.enqueue("second");
    await queue.enqueue("much later", { priority: "high", delayMs: anHour });
    await stage.advance(150 + stage.slackMs);
    expect(await drain(queue)).toEqual(["urgent", "first", "second"]);
  });

  it("treats a delay of 0 as none", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("now", { delayMs: 0 });
    expect(await drain(queue)).toEqual(["now"]);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("refuses a delay of %s", async (delayMs) => {
    const queue = await (await open()).queue();
    const refused = expect.objectContaining({ code: "OPTION_INVALID" });
    await expect(queue.enqueue("x", { delayMs })).rejects.toEqual(refused);
    const batch = [{ job: "fine" }, { job: "x", delayMs }];
    await expect(queue.enqueueMany(batch)).rejects.toEqual(refused);
    expect(await queue.snapshot()).toMatchObject({ depth: 0 });
  });

  it("releases with a delay, and serves it under its old sequence", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueue("first");
    await queue.enqueue("second");
    const first = await take(queue);
    expect(await queue.release(first, { delayMs: 200 })).toBe(true);
    expect(await queue.snapshot()).toMatchObject({ ready: 1, scheduled: 1, taken: 0 });
    await stage.advance(200 + stage.slackMs);
    const again = await take(queue);
    expect(again).toMatchObject({ id: first.id, sequence: first.sequence, attempt: 2 });
    expect((await take(queue)).job).toBe("second");
  });
};
