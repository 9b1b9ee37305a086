import { beforeEach, describe, expect, it } from "vitest";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import { ShardedQueue } from "../../src/queue/sharded-queue.ts";
import { ManualClock } from "../conformance/queue-clock.ts";
import { drain, jobsOf, take } from "../conformance/queue-stage.ts";
import { type Link, linkTo } from "./link.ts";

let clock: ManualClock;
let high: MemoryQueue<string>;
let low: MemoryQueue<string>;
let toHigh: Link<string>;
let toLow: Link<string>;
let queue: ShardedQueue<string>;

beforeEach(() => {
  clock = new ManualClock();
  high = new MemoryQueue({ clock });
  low = new MemoryQueue({ clock, maxInMemory: 3 });
  toHigh = linkTo(high);
  toLow = linkTo(low);
  queue = new ShardedQueue(
    [
      { name: "high", labels: ["high"], queue: toHigh.far },
      { name: "low", queue: toLow.far },
    ],
    { clock },
  );
});

const unavailable = expect.objectContaining({ code: "REDIS_UNAVAILABLE" });

describe("a sharded queue", () => {
  it("keeps each label in its shard, and shows both", async () => {
    await queue.enqueueMany([{ job: "a" }, { job: "b", priority: "high" }]);
    await queue.enqueue("c", { priority: "low" });
    expect(await queue.snapshot()).toMatchObject({
      ready: 3,
      parts: { high: { ready: 1 }, low: { ready: 2 } },
    });
  });

  it("answers a batch in the order in which it was given", async () => {
    const batch = ["high", "low", "high", "normal"].map((priority) => ({
      job: priority,
      priority,
    }));
    expect(jobsOf(await queue.enqueueMany(batch))).toEqual(["high", "low", "high", "normal"]);
  });

  it("takes from the first shard first, and fills a batch from the next", async () => {
    await queue.enqueueMany([{ job: "a" }, { job: "b" }, { job: "c", priority: "high" }]);
    expect(jobsOf(await queue.dequeueMany({ max: 2 }))).toEqual(["c", "a"]);
    expect(await drain(queue)).toEqual(["b"]);
  });

  it("serves and accepts for one shard while the other is down", async () => {
    await queue.enqueueMany([{ job: "a" }, { job: "b" }, { job: "urgent", priority: "high" }]);
    toHigh.state = "deaf";
    await expect(queue.enqueue("x", { priority: "high" })).rejects.toEqual(unavailable);
    await queue.enqueue("c");
    expect(await drain(queue)).toEqual(["a", "b", "c"]);
    expect(Object.keys((await queue.snapshot()).parts ?? {})).toEqual(["low"]);
    toHigh.state = "up";
    await clock.advance(1_000);
    expect(await drain(queue)).toEqual(["urgent"]);
  });

  it("waits on while one shard is down, and asks it again", async () => {
    toLow.state = "deaf";
    const first = queue.dequeue({ timeoutMs: 60_000 });
    await clock.advance(5_000);
    await high.enqueue("urgent", { priority: "high" });
    expect(await first).toMatchObject({ job: "urgent" });
    const second = queue.dequeue({ timeoutMs: 60_000 });
    await clock.advance(5_000);
    toLow.state = "up";
    await low.enqueue("plain");
    await clock.advance(1_000);
    expect(await second).toMatchObject({ job: "plain" });
  });

  it("waits on at one shard when the other was shut down", async () => {
    await high.shutdown();
    const taken = queue.dequeue({ timeoutMs: 60_000 });
    await clock.advance(5_000);
    await low.enqueue("plain");
    expect(await taken).toMatchObject({ job: "plain" });
  });

  it("gives back what two shards served to one take", async () => {
    const taken = queue.dequeue({ timeoutMs: 60_000 });
    await clock.advance(1);
    await Promise.all([low.enqueue("plain"), high.enqueue("urgent", { priority: "high" })]);
    expect(await taken).not.toBeNull();
    await clock.advance(1);
    expect(await queue.snapshot()).toMatchObject({ ready: 1, taken: 1 });
  });

  it("fails when no shard can be reached", async () => {
    toHigh.state = "deaf";
    toLow.state = "deaf";
    await expect(queue.snapshot()).rejects.toEqual(unavailable);
    await expect(queue.enqueue("x")).rejects.toEqual(unavailable);
  });

  it("tells which items another shard had accepted when one refuses", async () => {
    await queue.enqueueMany([{ job: "a" }, { job: "b" }, { job: "c" }]);
    const mixed = [
      { job: "d", id: "d" },
      { job: "urgent", priority: "high", id: "u" },
    ];
    await expect(queue.enqueueMany(mixed)).rejects.toMatchObject({ code: "QUEUE_FULL" });
    expect(await high.snapshot()).toMatchObject({ depth: 0 });
    high = new MemoryQueue({ clock, maxInMemory: 1 });
    await high.enqueue("full", { priority: "high" });
    const other = new ShardedQueue<string>([
      { name: "high", labels: ["high"], queue: high },
      { name: "low", queue: new MemoryQueue({ clock }) },
    ]);
    await expect(other.enqueueMany(mixed)).rejects.toMatchObject({
      code: "QUEUE_FULL",
      details: { accepted: ["d"] },
    });
  });

  it("finds the dead in every shard, in the order of their deaths", async () => {
    await queue.enqueue("plain", { id: "p" });
    await queue.bury(await take(queue), "broken");
    await clock.advance(5);
    await queue.enqueue("urgent", { id: "u", priority: "high" });
    await queue.bury(await take(queue), "broken");
    expect(jobsOf(await queue.dead())).toEqual(["plain", "urgent"]);
    expect(await queue.requeue("u")).toBe(true);
    expect(await drain(queue)).toEqual(["urgent"]);
  });

  it("needs a shard", () => {
    expect(() => new ShardedQueue([])).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
});
