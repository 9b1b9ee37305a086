import { expect, it } from "vitest";
import { anHour, jobsOf, patienceMs, type QueueTopic } from "./queue-stage.ts";

export const waiting: QueueTopic = (open) => {
  it("does not wait unless it is told to", async () => {
    const queue = await (await open()).queue();
    expect(await queue.dequeue()).toBeNull();
    expect(await queue.dequeue({ timeoutMs: 0 })).toBeNull();
    expect(await queue.dequeueMany({ max: 5 })).toEqual([]);
  });

  it("gives a waiting take what another handle enqueues", async () => {
    const stage = await open();
    const [consumer, producer] = [await stage.queue(), await stage.queue()];
    const taken = consumer.dequeue({ timeoutMs: patienceMs });
    await producer.enqueue("here");
    expect(await taken).toMatchObject({ job: "here", attempt: 1 });
  });

  it("wakes a waiting take when an item falls due", async () => {
    const stage = await open();
    const [consumer, producer] = [await stage.queue(), await stage.queue()];
    await producer.enqueue("much later", { delayMs: anHour });
    const taken = consumer.dequeue({ timeoutMs: patienceMs });
    await producer.enqueue("soon", { delayMs: 150 });
    await stage.advance(150 + stage.slackMs);
    expect(await taken).toMatchObject({ job: "soon" });
  });

  it("wakes a waiting take when an item is released", async () => {
    const stage = await open();
    const [holder, consumer] = [await stage.queue(), await stage.queue()];
    await holder.enqueue("shared");
    const item = await holder.dequeue();
    const taken = consumer.dequeue({ timeoutMs: patienceMs });
    if (item !== null) await holder.release(item);
    expect(await taken).toMatchObject({ job: "shared", attempt: 2 });
  });

  it("answers null when the time is over", async () => {
    const stage = await open();
    const queue = await stage.queue();
    const taken = queue.dequeue({ timeoutMs: 100 });
    await stage.advance(100 + stage.slackMs);
    expect(await taken).toBeNull();
    const many = queue.dequeueMany({ max: 3, timeoutMs: 100 });
    await stage.advance(100 + stage.slackMs);
    expect(await many).toEqual([]);
  });

  it("gives a take that gave up nothing of what comes later", async () => {
    const stage = await open();
    const queue = await stage.queue();
    const given = queue.dequeue({ timeoutMs: 50 });
    await stage.advance(50 + stage.slackMs);
    expect(await given).toBeNull();
    await queue.enqueue("late");
    expect(await queue.snapshot()).toMatchObject({ ready: 1, taken: 0 });
    expect(await queue.dequeue()).toMatchObject({ job: "late" });
  });

  it("ends a wait by its signal and loses nothing by it", async () => {
    const stage = await open();
    const [queue, producer] = [await stage.queue(), await stage.queue()];
    const abort = new AbortController();
    const taken = queue.dequeue({ timeoutMs: patienceMs, signal: abort.signal });
    abort.abort();
    expect(await taken).toBeNull();
    await producer.enqueue("kept");
    expect(await producer.dequeue({ timeoutMs: patienceMs })).toMatchObject({ job: "kept" });
    expect(await queue.dequeue({ timeoutMs: patienceMs, signal: abort.signal })).toBeNull();
  });

  it("gives each of several waiting takes an item of its own", async () => {
    const stage = await open();
    const [consumer, producer] = [await stage.queue(), await stage.queue()];
    const takes = Array.from({ length: 5 }, () => consumer.dequeue({ timeoutMs: patienceMs }));
    await producer.enqueueMany(["a", "b", "c", "d", "e"].map((job) => ({ job })));
    const items = await Promise.all(takes);
    expect(items.map((item) => item?.job).sort()).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("waits for the first item of a batch only, then gives what is there", async () => {
    const stage = await open();
    const [consumer, producer] = [await stage.queue(), await stage.queue()];
    const taken = consumer.dequeueMany({ max: 3, timeoutMs: patienceMs });
    await producer.enqueueMany(["a", "b", "c", "d"].map((job) => ({ job })));
    const first = await taken;
    expect(first.length).toBeGreaterThanOrEqual(1);
    expect(first.length).toBeLessThanOrEqual(3);
    const rest = await consumer.dequeueMany({ max: 10, timeoutMs: patienceMs });
    expect(jobsOf([...first, ...rest])).toEqual(["a", "b", "c", "d"]);
  });

  it.each([0, -1, 1.5, Number.NaN])("refuses a batch of at most %s", async (max) => {
    const queue = await (await open()).queue();
    await expect(queue.dequeueMany({ max })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
};
