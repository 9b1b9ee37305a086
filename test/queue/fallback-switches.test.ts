// Whatever fails and whenever: what was acknowledged is served, and once. Only a taker that lost its
// primary in the middle of a take may see an item again.

import fc from "fast-check";
import { expect, it } from "vitest";
import { FallbackQueue } from "../../src/queue/fallback-queue.ts";
import { MemoryQueue } from "../../src/queue/memory-queue.ts";
import type { QueueItem } from "../../src/queue/queue.ts";
import { ManualClock } from "../conformance/queue-clock.ts";
import { linkTo } from "./link.ts";

type Step =
  | { readonly do: "enqueue"; readonly delayMs: number; readonly times: number }
  | { readonly do: "take"; readonly max: number }
  | { readonly do: "settle"; readonly how: "ack" | "release" }
  | { readonly do: "link"; readonly state: "up" | "deaf" | "mute" | "silent" }
  | { readonly do: "advance"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("enqueue" as const),
    delayMs: fc.constantFrom(0, 0, 0, 500, 5_000),
    times: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ do: fc.constant("take" as const), max: fc.integer({ min: 1, max: 3 }) }),
  fc.record({
    do: fc.constant("settle" as const),
    how: fc.constantFrom("ack" as const, "ack" as const, "release" as const),
  }),
  fc.record({
    do: fc.constant("link" as const),
    state: fc.constantFrom("up" as const, "deaf" as const, "mute" as const, "silent" as const),
  }),
  fc.record({ do: fc.constant("advance" as const), ms: fc.constantFrom(10, 900, 3_000) }),
);

class Trial {
  readonly clock = new ManualClock();
  readonly far = new MemoryQueue<string>({ clock: this.clock });
  readonly link = linkTo(this.far);
  readonly queue = new FallbackQueue<string>(
    this.link.far,
    new MemoryQueue<string>({ clock: this.clock }),
    { clock: this.clock },
  );
  readonly acknowledged: string[] = [];
  readonly held: QueueItem<string>[] = [];
  readonly acked = new Map<string, number>();

  async perform(one: Step): Promise<void> {
    if (one.do === "link") this.link.state = one.state;
    else if (one.do === "advance") await this.clock.advance(one.ms);
    else if (one.do === "enqueue") await this.#enqueue(one.delayMs, one.times);
    else if (one.do === "take") await this.#take(one.max);
    else await this.#settle(one.how);
  }

  /** The primary is back, everything falls due, and nobody holds anything any more. */
  async end(): Promise<void> {
    this.link.state = "up";
    while (this.held.length > 0) await this.#settle("ack");
    for (let i = 0; i < 20; i++) {
      await this.clock.advance(2_000);
      await this.#take(100);
      while (this.held.length > 0) await this.#settle("ack");
    }
    await this.queue.shutdown();
  }

  async #enqueue(delayMs: number, times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      const job = `job ${this.acknowledged.length}`;
      await this.#patiently(this.queue.enqueue(job, { delayMs }));
      this.acknowledged.push(job);
    }
  }

  async #take(max: number): Promise<void> {
    this.held.push(...(await this.#patiently(this.queue.dequeueMany({ max }))));
  }

  async #settle(how: "ack" | "release"): Promise<void> {
    const item = this.held.shift();
    if (item === undefined) return;
    const isDone = await this.#patiently(this.queue[how](item));
    if (how === "ack" && isDone) this.acked.set(item.job, (this.acked.get(item.job) ?? 0) + 1);
  }

  /** A silent primary answers nobody until its time is over. */
  async #patiently<R>(call: Promise<R>): Promise<R> {
    let isOver = false;
    const answer = call.finally(() => {
      isOver = true;
    });
    for (let i = 0; i < 10 && !isOver; i++) await this.clock.advance(i === 0 ? 0 : 500);
    return answer;
  }
}

it("loses nothing and finishes nothing twice, whatever the link does", async () => {
  const steps = fc.array(step, { minLength: 5, maxLength: 60, size: "max" });
  const property = fc.asyncProperty(steps, async (list) => {
    const trial = new Trial();
    for (const one of list) await trial.perform(one);
    await trial.end();
    const once = new Map(trial.acknowledged.map((job) => [job, 1]));
    expect(trial.acked).toEqual(once);
    expect(await trial.far.snapshot()).toMatchObject({ depth: 0 });
  });
  await fc.assert(property, { numRuns: 150, interruptAfterTimeLimit: 30_000 });
}, 90_000);
