// Takes for everybody in this process who waits: one take at a time, as large as their wishes together.
// When it comes back short, it sleeps until the queue's signal, the next due time, or a new wish.

import { longestTimerMs } from "../../runtime/clock.ts";
import { WakeUp } from "../../runtime/wake-up.ts";
import type { DequeueOptions } from "../queue.ts";

export interface TakerOptions<I> {
  /** What is there, up to so many, and when the next is due in ms (-1: never). */
  readonly take: (most: number) => Promise<{ items: I[]; nextDueMs: number }>;
  /** Back into the queue as never taken: nobody waits for it any more. */
  readonly giveBack: (items: readonly I[]) => void;
  /** Makes sure that wake() is called when there is something to take. */
  readonly listen: () => void;
}

interface Wish<I> {
  readonly max: number;
  /** False once its time is over: then the next answer is its last. */
  waits: boolean;
  readonly items: I[];
  asked: boolean;
  answered: boolean;
  readonly settle: (outcome: { items: I[] } | { error: unknown }) => void;
}

const mostAtOnce = 1_000;
const longestSleepMs = 60_000;

export class Taker<I> {
  readonly #options: TakerOptions<I>;
  readonly #wishes = new Set<Wish<I>>();
  readonly #wakeUp = new WakeUp();
  #running = false;
  #taking = false;
  #done: Promise<void> = Promise.resolve();
  #sleeping = false;
  #draining = false;

  constructor(options: TakerOptions<I>) {
    this.#options = options;
  }

  get isWaitedFor(): boolean {
    return this.#wishes.size > 0;
  }

  take(max: number, { timeoutMs = 0, signal }: DequeueOptions): Promise<I[]> {
    if (signal?.aborted) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const giveUp = () => wish.settle({ items: wish.items });
      const wish: Wish<I> = {
        ...{ max, waits: timeoutMs > 0, items: [], asked: false, answered: false },
        settle: (outcome) => {
          if (!this.#wishes.delete(wish)) return;
          if (this.#wishes.size === 0) this.#disturb();
          clearTimeout(timer);
          signal?.removeEventListener("abort", giveUp);
          if ("error" in outcome) reject(outcome.error);
          else resolve(outcome.items);
        },
      };
      // However short the time, what is there is there: nobody leaves before the first answer.
      const timeIsOver = () => {
        if (wish.answered && !this.#taking) giveUp();
        else wish.waits = false;
      };
      this.#wishes.add(wish);
      signal?.addEventListener("abort", giveUp, { once: true });
      if (wish.waits) timer = setTimeout(timeIsOver, Math.min(timeoutMs, longestTimerMs));
      this.#start();
    });
  }

  wake(): void {
    this.#wakeUp.wake();
  }

  /** From now on nobody waits: what is ready is served, and then nothing. */
  drain(): void {
    this.#draining = true;
    this.wake();
  }

  /** Resolves when nobody is being served any more. */
  get idle(): Promise<void> {
    return this.#done;
  }

  /** Unlike wake(), of no effect on a later sleep. */
  #disturb(): void {
    if (this.#sleeping) this.wake();
  }

  #start(): void {
    if (this.#running) {
      this.#disturb();
    } else {
      this.#running = true;
      // After this tick, so that wishes made together are one take.
      this.#done = new Promise((resolve) => process.nextTick(resolve)).then(() => this.#run());
    }
  }

  async #run(): Promise<void> {
    while (this.#wishes.size > 0) {
      const wishes = [...this.#wishes];
      try {
        const nextDueMs = await this.#serve(wishes);
        if (nextDueMs !== undefined && this.#wishes.size > 0) await this.#sleep(nextDueMs);
      } catch (error) {
        for (const wish of wishes) {
          if (wish.items.length > 0) wish.settle({ items: wish.items });
          else wish.settle({ error });
        }
      }
    }
    this.#running = false;
  }

  /** Answers when the next item is due, if the take came back short. */
  async #serve(wishes: readonly Wish<I>[]): Promise<number | undefined> {
    for (const wish of wishes) wish.asked = true;
    const wanted = wishes.reduce((sum, { max, items }) => sum + max - items.length, 0);
    const most = Math.min(wanted, mostAtOnce);
    this.#taking = true;
    const { items, nextDueMs } = await this.#options.take(most).finally(() => {
      this.#taking = false;
    });
    this.#hand(items, items.length < most);
    return items.length < most ? nextDueMs : undefined;
  }

  /** `isAll`: there was no more, so whoever got something has what there is. */
  #hand(items: readonly I[], isAll: boolean): void {
    let from = 0;
    for (const wish of this.#wishes) {
      if (!wish.asked) continue;
      wish.answered = true;
      const part = items.slice(from, from + wish.max - wish.items.length);
      from += part.length;
      wish.items.push(...part);
      const done = wish.items.length === wish.max || (isAll && wish.items.length > 0);
      if (done || (isAll && (!wish.waits || this.#draining))) wish.settle({ items: wish.items });
    }
    if (from < items.length) this.#options.giveBack(items.slice(from));
  }

  async #sleep(nextDueMs: number): Promise<void> {
    if ([...this.#wishes].some(({ asked }) => !asked)) return;
    this.#options.listen();
    const sleepMs = nextDueMs < 0 ? longestSleepMs : Math.min(nextDueMs, longestSleepMs);
    this.#sleeping = true;
    await this.#wakeUp.sleep(sleepMs);
    this.#sleeping = false;
  }
}
