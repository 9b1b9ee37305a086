import { expect, it } from "vitest";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import { ManualClock } from "../conformance/queue-clock.ts";

const anHour = 3_600_000;

it("serves those who wait first come, first served", async () => {
  const queue = new MemoryQueue<string>();
  const takes = [1, 2, 3].map(() => queue.dequeue({ timeoutMs: anHour }));
  for (const job of ["a", "b", "c"]) await queue.enqueue(job);
  expect((await Promise.all(takes)).map((item) => item?.job)).toEqual(["a", "b", "c"]);
});

it("serves those who wait before one who comes when an item has fallen due", async () => {
  const clock = new ManualClock();
  const queue = new MemoryQueue<string>({ clock });
  await queue.enqueue("soon", { delayMs: 100 });
  const first = queue.dequeue({ timeoutMs: anHour });
  const due = clock.advance(100);
  const second = queue.dequeue();
  await due;
  expect(await first).toMatchObject({ job: "soon" });
  expect(await second).toBeNull();
});

it("sets one timer for what is due, however many are scheduled, and none while nobody waits", async () => {
  const clock = new ManualClock();
  const queue = new MemoryQueue<string>({ clock });
  for (let i = 1; i <= 100; i++) await queue.enqueue(`job ${i}`, { delayMs: i * 1_000 });
  expect(clock.sleeping).toBe(0);
  const abort = new AbortController();
  const takes = [1, 2].map(() => queue.dequeue({ timeoutMs: anHour, signal: abort.signal }));
  expect(clock.sleeping).toBe(3);
  await clock.advance(1_000);
  expect(await takes[0]).toMatchObject({ job: "job 1" });
  expect(clock.sleeping).toBe(2);
  abort.abort();
  expect(await takes[1]).toBeNull();
  expect(clock.sleeping).toBe(0);
});

it("works by the machine's own clock too", async () => {
  const queue = new MemoryQueue<string>();
  await queue.enqueue("soon", { delayMs: 20 });
  const item = await queue.dequeue({ timeoutMs: 20_000 });
  expect(item).toMatchObject({ job: "soon" });
  expect(Date.now()).toBeGreaterThanOrEqual(item?.readyAt ?? Number.POSITIVE_INFINITY);
});

it("waits for an item that is due in more days than a timer has", async () => {
  const clock = new ManualClock();
  const queue = new MemoryQueue<string>({ clock });
  const days = 60 * 24 * anHour;
  await queue.enqueue("in two months", { delayMs: days });
  const abort = new AbortController();
  const taken = queue.dequeue({ timeoutMs: 2 * days, signal: abort.signal });
  await clock.advance(days / 2);
  expect(await queue.snapshot()).toMatchObject({ scheduled: 1, taken: 0 });
  abort.abort();
  expect(await taken).toBeNull();
  await clock.advance(days / 2);
  expect(await queue.dequeue()).toMatchObject({ job: "in two months" });
});

it("accepts a copy of an item where the item was taken", async () => {
  const queue = new MemoryQueue<{ n: number }>();
  await queue.enqueue({ n: 1 });
  const item = await queue.dequeue();
  expect(item).not.toBeNull();
  if (item !== null) expect(await queue.ack(JSON.parse(JSON.stringify(item)))).toBe(true);
});

it("knows an id it made itself while its item is in the queue, and after a requeue", async () => {
  const queue = new MemoryQueue<string>();
  const { id } = await queue.enqueue("only");
  expect(await queue.enqueue("again", { id })).toMatchObject({ job: "only" });
  const item = await queue.dequeue();
  if (item !== null) await queue.bury(item, "broken");
  await queue.enqueue("in between");
  expect(await queue.requeue(id)).toBe(true);
  expect(await queue.enqueue("again", { id })).toMatchObject({ job: "only", attempt: 0 });
  expect(await queue.snapshot()).toMatchObject({ depth: 2 });
});

it("takes the id of a dead item for a new one, and lists it by its last death only", async () => {
  const queue = new MemoryQueue<string>();
  for (const id of ["x", "y", "x"]) {
    await queue.enqueue(`job of ${id}`, { id });
    const item = await queue.dequeue();
    if (item !== null) await queue.bury(item, "broken");
  }
  expect((await queue.dead()).map(({ id }) => id)).toEqual(["y", "x"]);
  await queue.enqueue("alive", { id: "x" });
  expect(await queue.requeue("x")).toBe(false);
  expect(await queue.snapshot()).toMatchObject({ depth: 1, dead: 2 });
});

it("does not take an id for its own because it looks like one", async () => {
  const queue = new MemoryQueue<string>();
  const { id } = await queue.enqueue("first");
  await queue.enqueue("second", { id: "given" });
  const alike = id.replace(/1$/, "2");
  expect(alike).not.toBe(id);
  expect(await queue.enqueue("third", { id: alike })).toMatchObject({ job: "third", id: alike });
  expect(await queue.snapshot()).toMatchObject({ depth: 3 });
});

it("hands future items back the earliest first, and what was released since the next time", async () => {
  const queue = new MemoryQueue<string>();
  await queue.enqueue("held");
  await queue.enqueue("late", { delayMs: 2 * anHour });
  await queue.enqueue("early", { delayMs: anHour });
  const held = await queue.dequeue();
  expect((await queue.shutdown()).map(({ job }) => job)).toEqual(["early", "late"]);
  if (held !== null) await queue.release(held, { delayMs: anHour });
  expect((await queue.shutdown()).map(({ job }) => job)).toEqual(["held"]);
});

it("keeps its order over a hundred thousand items of mixed priorities, taken and released", async () => {
  const queue = new MemoryQueue<number>();
  const labels = ["high", "normal", "low"];
  const count = 100_000;
  await queue.enqueueMany(
    Array.from({ length: count }, (_, job) => ({ job, priority: labels[job % 3] ?? "normal" })),
  );
  const some = await queue.dequeueMany({ max: 1_000 });
  for (const item of some) await queue.release(item);
  const served = (await queue.dequeueMany({ max: count })).map(({ job }) => job);
  const expected = [0, 1, 2].flatMap((label) =>
    Array.from({ length: count }, (_, job) => job).filter((job) => job % 3 === label),
  );
  expect(served).toEqual(expected);
});

it.each([{ maxInMemory: 0 }, { warnDepth: 1.5 }, { priorities: { high: 0 } }])(
  "refuses the option %o",
  (options) => {
    expect(() => new MemoryQueue(options)).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    );
  },
);
