// Does a step on a real queue and on the model of one, and compares what they answer.

import { expect } from "vitest";
import type { Queue, QueueItem } from "../../src/queue/queue.ts";
import { QueueModel, type Span } from "./queue-model.ts";
import type { QueueStage, SharedQueueStage } from "./queue-stage.ts";

interface StepItem {
  readonly id: string;
  readonly priority: string;
  readonly delayMs: number;
}

export type QueueStep =
  | { readonly do: "enqueue"; readonly handle: number; readonly item: StepItem }
  | { readonly do: "enqueueMany"; readonly handle: number; readonly items: readonly StepItem[] }
  | { readonly do: "take"; readonly handle: number; readonly max: number }
  | { readonly do: "ack"; readonly pick: number }
  | { readonly do: "bury"; readonly pick: number }
  | { readonly do: "release"; readonly pick: number; readonly delayMs: number }
  | { readonly do: "requeue"; readonly handle: number; readonly id: string }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "purge"; readonly handle: number }
  | { readonly do: "crash"; readonly handle: number }
  | { readonly do: "restart" };

interface RehearsalOptions {
  readonly idsPerPriority: boolean;
}

interface Take {
  readonly item: QueueItem<string>;
  readonly holder: number;
}

export class QueueRehearsal {
  readonly #stage: QueueStage & Partial<SharedQueueStage>;
  readonly #options: RehearsalOptions;
  readonly #model: QueueModel;
  readonly #handles: Queue<string>[];
  /** Every take there was, so that settles come from old ones too. */
  #takes: Take[] = [];
  #jobs = 0;

  private constructor(stage: QueueStage, handles: Queue<string>[], options: RehearsalOptions) {
    this.#stage = stage;
    this.#options = options;
    this.#model = new QueueModel(stage.slackMs);
    this.#handles = handles;
  }

  static async begin(stage: QueueStage, options: RehearsalOptions): Promise<QueueRehearsal> {
    const handles = [await stage.queue(), await stage.queue(), await stage.queue()];
    return new QueueRehearsal(stage, handles, options);
  }

  async perform(step: QueueStep): Promise<void> {
    switch (step.do) {
      case "enqueue":
        return this.#enqueue(this.#handle(step.handle), [step.item]);
      case "enqueueMany":
        return this.#enqueue(this.#handle(step.handle), step.items);
      case "take":
        return this.#take(step.handle, step.max);
      case "ack":
      case "bury":
      case "release":
        return this.#settle(step);
      case "requeue": {
        const { span, answer } = await this.#timed(() =>
          this.#handle(step.handle).requeue(step.id),
        );
        return expect(answer).toBe(this.#model.requeue(step.id, span));
      }
      case "purge":
        return expect(await this.#handle(step.handle).purge()).toBe(this.#model.purge());
      case "advance":
        return this.#stage.advance(step.ms);
      case "crash":
        return this.#crash(step.handle);
      case "restart":
        await this.#stage.restart?.();
        return this.#compare();
    }
  }

  /** Everything that waits is due in an hour and a little, and whatever is then left is served. */
  async end(): Promise<void> {
    await this.#compare();
    for (let i = 0; i < 1_000; i++) {
      const before = this.#takes.length;
      await this.#take(0, 50);
      if (this.#takes.length === before) break;
    }
    await this.#compare();
  }

  async #enqueue(handle: Queue<string>, items: readonly StepItem[]): Promise<void> {
    const { idsPerPriority } = this.#options;
    const named = idsPerPriority
      ? items.map((item) => ({ ...item, id: `${item.id}-${item.priority}` }))
      : items;
    // What a dead item's id means to an enqueue is not promised.
    const alive = named.filter(({ id }) => !this.#model.isDead(id));
    const given = alive.map((item) => ({ ...item, job: `job ${++this.#jobs}` }));
    const { span, answer } = await this.#timed(async () => {
      const [only] = given;
      if (given.length !== 1 || only === undefined) return handle.enqueueMany(given);
      const { job, ...options } = only;
      return [await handle.enqueue(job, options)];
    });
    const expected = given.map(({ id, job, priority, delayMs }) =>
      this.#model.enqueue(id, job, priority, delayMs, span),
    );
    expect(answer.map(({ job }) => job)).toEqual(expected);
  }

  async #take(holder: number, max: number): Promise<void> {
    const handle = this.#handle(holder);
    const { span, answer } = await this.#timed(async () => {
      if (max > 1) return handle.dequeueMany({ max });
      const item = await handle.dequeue();
      return item === null ? [] : [item];
    });
    expect(this.#model.take(answer, max, holder, span)).toBeUndefined();
    this.#takes.push(...answer.map((item) => ({ item, holder })));
  }

  async #settle(step: Extract<QueueStep, { readonly pick: number }>): Promise<void> {
    const take = this.#takes[this.#takes.length - 1 - (step.pick % (this.#takes.length || 1))];
    if (take === undefined) return;
    const handle = this.#handle(take.holder);
    const { item } = take;
    if (step.do === "ack") return expect(await handle.ack(item)).toBe(this.#model.ack(item));
    if (step.do === "bury") {
      expect(await handle.bury(item, "broken")).toBe(this.#model.bury(item));
      expect((await handle.dead()).map(({ id }) => id).sort()).toEqual(
        [...this.#model.dead()].sort(),
      );
      return;
    }
    const { delayMs } = step;
    const { span, answer } = await this.#timed(() => handle.release(item, { delayMs }));
    expect(answer).toBe(this.#model.release(item, delayMs, span));
  }

  async #crash(holder: number): Promise<void> {
    if (this.#stage.crash === undefined) return;
    await this.#stage.crash(this.#handle(holder));
    this.#handles[holder] = await this.#stage.queue();
    this.#model.crash(holder);
    this.#takes = this.#takes.filter((take) => take.holder !== holder);
  }

  async #compare(): Promise<void> {
    const { span, answer } = await this.#timed(() => this.#handle(0).snapshot());
    expect(this.#model.compare(answer, span)).toBeUndefined();
  }

  async #timed<R>(call: () => Promise<R>): Promise<{ span: Span; answer: R }> {
    const from = this.#stage.now();
    const answer = await call();
    return { span: { from, to: this.#stage.now() }, answer };
  }

  #handle(index: number): Queue<string> {
    const handle = this.#handles[index];
    if (handle === undefined) throw new Error(`there is no handle ${index}`);
    return handle;
  }
}
