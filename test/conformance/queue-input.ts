import { expect, it } from "vitest";
import type { EnqueueOptions, NewItem, QueueItem } from "../../src/queue/queue.ts";
import { drain, type QueueTopic, take } from "./queue-stage.ts";

const invalid = { code: "OPTION_INVALID" };

/** What no type checker would let pass, and a script in plain JavaScript may well say. */
const any = <T>(value: unknown): T => value as T;

const wrongOptions: readonly unknown[] = [
  null,
  5,
  { id: 5 },
  { id: null },
  { id: "" },
  { id: "\ud800" },
  { id: "x".repeat(1_001) },
  { correlationId: 7 },
  { correlationId: true },
  { correlationId: {} },
  { priority: null },
  { priority: 5 },
  { delayMs: -1 },
  { delayMs: "5" },
  { delayMs: Number.NaN },
  { delayMs: 1e18 },
];

const wrongWaits: readonly unknown[] = [
  null,
  { timeoutMs: -1 },
  { timeoutMs: Number.NaN },
  { timeoutMs: "5" },
  { signal: {} },
  { signal: "stop" },
];

const wrongItems: readonly unknown[] = [undefined, null, 5, "x", {}, { id: "x" }, { id: 5 }];

export const input: QueueTopic = (open) => {
  it("refuses a wrong option, and spares those who call in the same moment", async () => {
    const queue = await (await open()).queue();
    for (const [i, wrong] of wrongOptions.entries()) {
      const calls = await Promise.allSettled([
        queue.enqueue(`before ${i}`),
        queue.enqueue("wrong", any<EnqueueOptions>(wrong)),
        queue.enqueue(`after ${i}`),
      ]);
      expect(calls[1], JSON.stringify(wrong)).toMatchObject({ reason: invalid });
      expect(calls.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(await drain(queue)).toEqual([`before ${i}`, `after ${i}`]);
    }
  });

  it("refuses a batch that is none, or that has a wrong item", async () => {
    const queue = await (await open()).queue();
    for (const wrong of [null, "ab", {}, [{ job: "a" }, null], [{ job: "a" }, { job: "b", id: 5 }]])
      await expect(queue.enqueueMany(any<NewItem<string>[]>(wrong))).rejects.toMatchObject(invalid);
    expect(await queue.snapshot()).toMatchObject({ depth: 0 });
  });

  it("refuses a senseless wait, and takes nothing for it", async () => {
    const queue = await (await open()).queue();
    for (const wrong of wrongWaits) {
      await expect(queue.dequeue(any(wrong)), JSON.stringify(wrong)).rejects.toMatchObject(invalid);
    }
    for (const wrong of [undefined, null, {}, { max: 0 }, { max: 1.5 }, { max: 1, timeoutMs: -1 }])
      await expect(queue.dequeueMany(any(wrong))).rejects.toMatchObject(invalid);
    const waiting = queue.dequeue({ timeoutMs: Number.POSITIVE_INFINITY });
    await expect(queue.dequeue(any({ signal: {}, timeoutMs: 100 }))).rejects.toMatchObject(invalid);
    await queue.enqueue("a");
    expect(await waiting).toMatchObject({ job: "a" });
    expect(await queue.snapshot()).toMatchObject({ depth: 0, taken: 1 });
  });

  it("serves what is there, however short the wait", async () => {
    const queue = await (await open()).queue();
    await queue.enqueueMany(Array.from({ length: 50 }, (_, i) => ({ job: `${i}` })));
    for (let i = 0; i < 50; i++) {
      expect(await queue.dequeue({ timeoutMs: 0.01 })).toMatchObject({ job: `${i}` });
    }
    expect(await queue.snapshot()).toMatchObject({ ready: 0, taken: 50 });
  });

  it("refuses to settle what is no item, and settles its neighbours", async () => {
    const queue = await (await open()).queue();
    for (const wrong of wrongItems) {
      const item = any<QueueItem<string>>(wrong);
      await queue.enqueueMany([{ job: "a" }, { job: "b" }, { job: "c" }]);
      const [a, b, c] = [await take(queue), await take(queue), await take(queue)];
      const calls = await Promise.allSettled([
        ...[queue.ack(a), queue.ack(item)],
        ...[queue.release(b, { delayMs: 0 }), queue.release(item)],
        ...[queue.bury(c, "broken"), queue.bury(item, "broken")],
      ]);
      for (const [i, call] of calls.entries()) {
        if (i % 2 === 0) expect(call).toEqual({ status: "fulfilled", value: true });
        else expect(call).toMatchObject({ reason: invalid });
      }
      expect(await drain(queue)).toEqual(["b"]);
    }
  });

  it("releases and buries by sensible arguments only, an Error being one", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("a");
    const item = await take(queue);
    for (const wrong of [null, { delayMs: -1 }, { delayMs: 1e18 }])
      await expect(queue.release(item, any(wrong))).rejects.toMatchObject(invalid);
    for (const wrong of [undefined, null, 5, {}])
      await expect(queue.bury(item, any(wrong))).rejects.toMatchObject(invalid);
    expect(await queue.bury(item, new Error("no such account"))).toBe(true);
    expect(await queue.dead()).toMatchObject([{ job: "a", error: "no such account" }]);
  });

  it("lists and requeues the dead by sensible arguments only", async () => {
    const queue = await (await open()).queue();
    await queue.enqueue("a", { id: "x" });
    await queue.bury(await take(queue), "broken");
    for (const limit of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1"])
      await expect(queue.dead(any({ limit }))).rejects.toMatchObject(invalid);
    await expect(queue.dead(any(null))).rejects.toMatchObject(invalid);
    for (const id of [undefined, null, 5, "", {}])
      await expect(queue.requeue(any(id))).rejects.toMatchObject(invalid);
    expect(await queue.requeue("x")).toBe(true);
  });
};
