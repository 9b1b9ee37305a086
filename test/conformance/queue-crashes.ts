import { expect, it } from "vitest";
import { drain, patienceMs, type SharedQueueTopic, take } from "./queue-stage.ts";

export const crashes: SharedQueueTopic = (open) => {
  it("serves again what a taker that died had taken, under its old sequence", async () => {
    const stage = await open();
    const [victim, survivor] = [await stage.queue(), await stage.queue()];
    await survivor.enqueueMany([{ job: "first" }, { job: "second" }, { job: "third" }]);
    const first = await take(victim);
    await take(victim);
    await stage.crash(victim);
    const again = await take(survivor);
    expect(again).toMatchObject({ id: first.id, sequence: first.sequence, attempt: 2 });
    expect((await take(survivor)).job).toBe("second");
    expect((await take(survivor)).job).toBe("third");
    expect(await survivor.ack(again)).toBe(true);
  });

  it("lets nobody but its taker settle an item", async () => {
    const stage = await open();
    const [taker, other] = [await stage.queue(), await stage.queue()];
    await taker.enqueue("mine");
    const item = await take(taker);
    expect(await other.ack(item)).toBe(false);
    expect(await other.release(item)).toBe(false);
    expect(await other.bury(item, "not mine")).toBe(false);
    expect(await taker.ack(item)).toBe(true);
  });

  it("takes no item from a taker that lives, when another one dies", async () => {
    const stage = await open();
    const [victim, survivor] = [await stage.queue(), await stage.queue()];
    await survivor.enqueueMany([{ job: "mine" }, { job: "its" }]);
    const mine = await take(survivor);
    expect((await take(victim)).job).toBe("its");
    await stage.crash(victim);
    expect(await survivor.dequeue({ timeoutMs: patienceMs })).toMatchObject({ job: "its" });
    expect(await survivor.dequeue()).toBeNull();
    expect(await survivor.ack(mine)).toBe(true);
  });

  it("keeps what was acknowledged over a restart of the server", async () => {
    const stage = await open();
    const queue = await stage.queue();
    await queue.enqueueMany([{ job: "held" }, { job: "done" }, { job: "ready" }]);
    const [held, done] = [await take(queue), await take(queue)];
    await queue.ack(done);
    await stage.restart();
    expect(await queue.snapshot()).toMatchObject({ ready: 1, taken: 1 });
    expect(await queue.ack(held)).toBe(true);
    expect(await drain(queue)).toEqual(["ready"]);
  });
};
