import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FallbackQueue } from "../../src/queue/fallback-queue.ts";
import { MemoryQueue, type MemoryQueueOptions } from "../../src/queue/memory-queue.ts";
import { Events } from "../../src/runtime/events.ts";
import { ManualClock } from "../conformance/queue-clock.ts";
import { drain, jobsOf, take } from "../conformance/queue-stage.ts";
import { createGate } from "../support/gate.ts";
import { type Link, linkTo } from "./link.ts";

const tick = 1_000;
const timeout = 2_000;

let clock: ManualClock;
let near: MemoryQueue<string>;
let far: MemoryQueue<string>;
let link: Link<string>;
let queue: FallbackQueue<string>;
let told: string[];

beforeEach(() => open());

afterEach(async () => {
  const ended = queue.shutdown();
  await clock.advance(2 * timeout);
  await ended;
});

function open(ofPrimary: MemoryQueueOptions = {}): void {
  clock = new ManualClock();
  near = new MemoryQueue({ clock });
  far = new MemoryQueue({ clock, ...ofPrimary });
  link = linkTo(far);
  const events = new Events();
  told = [];
  events.on("queue.fell_back", () => told.push("fell back"));
  events.on("queue.recovered", ({ drained }) => told.push(`recovered with ${drained}`));
  queue = new FallbackQueue(link.far, near, { clock, events });
}

async function goDown(): Promise<void> {
  link.state = "deaf";
  await clock.advance(tick);
}

async function comeBack(): Promise<void> {
  link.state = "up";
  await clock.advance(tick);
}

describe("a fallback queue", () => {
  it("keeps accepting and serving while the primary is away, and drains into it afterwards", async () => {
    await queue.enqueue("before");
    await goDown();
    await queue.enqueue("one");
    await queue.enqueue("two");
    expect(await take(queue)).toMatchObject({ job: "one" });
    await comeBack();
    expect(await near.snapshot()).toMatchObject({ depth: 0, taken: 1 });
    expect(await drain(queue)).toEqual(["before", "two"]);
    expect(told).toEqual(["fell back", "recovered with 1"]);
  });

  it("finds out by itself, and tells of each switch once", async () => {
    expect(await queue.snapshot()).toMatchObject({ active: "primary" });
    await goDown();
    await clock.advance(10 * tick);
    expect(told).toEqual(["fell back"]);
    const down = await queue.snapshot();
    expect(down).toMatchObject({ active: "secondary", redis_active: false });
    expect(Object.keys(down.parts ?? {})).toEqual(["secondary"]);
    await comeBack();
    await clock.advance(10 * tick);
    expect(told).toEqual(["fell back", "recovered with 0"]);
    const up = await queue.snapshot();
    expect(up.active).toBe("primary");
    expect(Object.keys(up.parts ?? {})).toEqual(["primary", "secondary"]);
  });

  it("switches at the first call that fails, and the caller does not notice", async () => {
    link.state = "deaf";
    expect(await queue.enqueue("kept")).toMatchObject({ job: "kept" });
    expect(told).toEqual(["fell back"]);
    expect(await drain(queue)).toEqual(["kept"]);
  });

  it("does not wait for a silent primary longer than its timeout", async () => {
    link.state = "silent";
    const enqueued = queue.enqueue("kept");
    await clock.advance(timeout);
    expect(await enqueued).toMatchObject({ job: "kept" });
    expect(told).toEqual(["fell back"]);
  });

  it("has one item of an enqueue whose answer was lost, when that still waits at recovery", async () => {
    link.state = "mute";
    await queue.enqueue("once");
    expect(await far.snapshot()).toMatchObject({ ready: 1 });
    expect(await near.snapshot()).toMatchObject({ ready: 1 });
    await comeBack();
    expect(await drain(queue)).toEqual(["once"]);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0 });
  });

  it("serves it once, too, when the secondary served it meanwhile", async () => {
    link.state = "mute";
    await queue.enqueue("once");
    const item = await take(queue);
    expect(item.job).toBe("once");
    await comeBack();
    expect(await queue.dequeue()).toBeNull();
    expect(await queue.ack(item)).toBe(true);
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 0 });
  });

  it("serves an id that was in doubt when it is enqueued again", async () => {
    link.state = "mute";
    await queue.enqueue("first time", { id: "x" });
    await queue.ack(await take(queue));
    await comeBack();
    await queue.enqueue("second time", { id: "x" });
    expect(await take(queue)).toMatchObject({ id: "x" });
    expect(await queue.dequeue()).toBeNull();
  });

  it("does not lose it when the secondary's item is released after the switch", async () => {
    link.state = "mute";
    await queue.enqueue("once");
    const item = await take(queue);
    await comeBack();
    await queue.release(item);
    expect(await take(queue)).toMatchObject({ job: "once" });
    await clock.advance(2 * tick);
    expect(await queue.dequeue()).toBeNull();
  });

  it("lets the primary know, once it is back, what became of its items meanwhile", async () => {
    for (const job of ["done", "broken", "again"]) await queue.enqueue(job);
    const [done, broken, again] = await queue.dequeueMany({ max: 3 });
    if (done === undefined || broken === undefined || again === undefined) throw new Error("none");
    await goDown();
    expect(await queue.ack(done)).toBe(true);
    expect(await queue.ack(done)).toBe(false);
    expect(await queue.bury(broken, "no such account")).toBe(true);
    expect(await queue.release(again, { delayMs: 60_000 })).toBe(true);
    expect(await far.snapshot()).toMatchObject({ taken: 3 });
    await comeBack();
    expect(await far.snapshot()).toMatchObject({ taken: 0, dead: 1, scheduled: 1, ready: 0 });
    expect(await queue.dead()).toMatchObject([{ job: "broken", error: "no such account" }]);
    await clock.advance(60_000);
    expect(await take(queue)).toMatchObject({ job: "again", attempt: 2 });
  });

  it("settles an item with the queue that granted it, whichever serves now", async () => {
    await goDown();
    await queue.enqueue("of the secondary");
    const item = await take(queue);
    await comeBack();
    expect(await queue.ack(item)).toBe(true);
    expect(await near.snapshot()).toMatchObject({ taken: 0 });
  });

  it("moves what is due later with what is left of its delay", async () => {
    await goDown();
    await queue.enqueue("later", { delayMs: 60_000, correlationId: "case 7", priority: "high" });
    await clock.advance(20_000);
    await comeBack();
    expect(await far.snapshot()).toMatchObject({ scheduled: 1 });
    await clock.advance(38_000);
    expect(await queue.dequeue()).toBeNull();
    await clock.advance(1_000);
    expect(await take(queue)).toMatchObject({ correlationId: "case 7", priority: "high" });
  });

  it("keeps the order inside a priority of all that was accepted during the outage", async () => {
    await goDown();
    const jobs = Array.from({ length: 1_200 }, (_, i) => `job ${i}`);
    await queue.enqueueMany(jobs.map((job) => ({ job })));
    await comeBack();
    expect(await near.snapshot()).toMatchObject({ depth: 0 });
    expect(await drain(queue)).toEqual(jobs);
    expect(told).toEqual(["fell back", "recovered with 1200"]);
  });

  it("wakes those who wait when it switches, in both directions", async () => {
    const first = queue.dequeue({ timeoutMs: 600_000 });
    await clock.advance(1);
    await goDown();
    await near.enqueue("there");
    expect(await first).toMatchObject({ job: "there" });
    const second = queue.dequeue({ timeoutMs: 600_000 });
    await clock.advance(1);
    await comeBack();
    await far.enqueue("here");
    expect(await second).toMatchObject({ job: "here" });
  });

  it("stays on the secondary when the primary fails during the drain, and loses nothing", async () => {
    await goDown();
    await queue.enqueue("kept");
    link.far.enqueueMany = async () => {
      throw new Error("OOM command not allowed");
    };
    await comeBack();
    await clock.advance(5 * tick);
    expect(told).toEqual(["fell back"]);
    expect(await drain(queue)).toEqual(["kept"]);
  });

  it("serves what a full primary does not take", async () => {
    open({ maxInMemory: 1 });
    await queue.enqueue("first");
    await goDown();
    await queue.enqueueMany([{ job: "second" }, { job: "third" }]);
    await comeBack();
    await expect(queue.enqueue("fourth")).rejects.toMatchObject({ code: "QUEUE_FULL" });
    expect(await drain(queue)).toEqual(["first", "second", "third"]);
  });

  it("lists the dead of both parts in the order of their deaths, and requeues from either", async () => {
    await queue.enqueue("a", { id: "a" });
    await queue.bury(await take(queue), "broken");
    await goDown();
    await queue.enqueue("b", { id: "b" });
    await queue.bury(await take(queue), "broken");
    await comeBack();
    expect(jobsOf(await queue.dead())).toEqual(["a", "b"]);
    expect(jobsOf(await queue.dead({ limit: 1 }))).toEqual(["a"]);
    expect(await queue.requeue("a")).toBe(true);
    expect(await queue.requeue("b")).toBe(true);
    await clock.advance(tick);
    expect(await near.snapshot()).toMatchObject({ depth: 0 });
    expect(await drain(queue)).toEqual(["a", "b"]);
  });

  it("gives back what a take was served after it had given up", async () => {
    await queue.enqueue("late answer");
    const slow = link.far.dequeueMany;
    const gate = createGate();
    link.far.dequeueMany = async (options) => {
      const items = await slow(options);
      await gate.opened;
      return items;
    };
    const taken = queue.dequeue();
    await clock.advance(timeout);
    expect(await taken).toBeNull();
    link.far.dequeueMany = slow;
    gate.open();
    await clock.advance(tick);
    expect(await take(queue)).toMatchObject({ job: "late answer", attempt: 2 });
  });

  it("hands back, when it is shut down during a drain, what the primary did not take", async () => {
    await goDown();
    await queue.enqueue("later", { delayMs: 60_000 });
    link.far.ping = async () => {
      link.state = "silent";
    };
    await clock.advance(tick);
    expect(await near.snapshot()).toMatchObject({ depth: 0 });
    const handedBack = queue.shutdown();
    await clock.advance(2 * timeout);
    expect(jobsOf(await handedBack)).toEqual(["later"]);
  });

  it("hands back what the secondary had for later when it is shut down", async () => {
    await goDown();
    await queue.enqueue("later", { delayMs: 60_000 });
    await queue.enqueue("ready");
    expect(jobsOf(await queue.shutdown())).toEqual(["later"]);
    expect(await drain(queue)).toEqual(["ready"]);
    expect(clock.sleeping).toBe(0);
  });
});
