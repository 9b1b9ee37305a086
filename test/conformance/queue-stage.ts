// What the queue's conformance suite stands on: one queue, seen through as many handles as there would
// be processes, whose time a test can let pass and whose takers and server it can end.

import { afterEach } from "vitest";
import type { Priorities } from "../../src/domain/priority.ts";
import type { Queue, QueueItem } from "../../src/queue/queue.ts";
import type { Events } from "../../src/runtime/events.ts";

export interface QueueStage {
  /** Another handle on the same queue, as another process would have; in memory there is but one. */
  queue(): Promise<Queue<string>>;
  /** Milliseconds since the epoch, by the clock that decides what is due. */
  now(): number;
  /** Lets so much time pass: at once where the clock is the test's own, else by waiting. */
  advance(ms: number): Promise<void>;
  /** How far off a due time may be; 0 where the clock is the test's own. */
  readonly slackMs: number;
  close(): Promise<void>;
}

/** A queue that several processes share, on a server of its own. */
export interface SharedQueueStage extends QueueStage {
  /** The taker dies without a word. Resolves when others may take what it held. */
  crash(handle: Queue<string>): Promise<void>;
  /**
   * The server goes down and comes back, and the handles work again. Nothing acknowledged is lost, and
   * it is back before a taker's heartbeat is missed: what is taken stays with its taker.
   */
  restart(): Promise<void>;
}

export interface StageOptions {
  readonly priorities?: Priorities;
  /** The most that may be ready or scheduled: maxInMemory, or maxDepth. */
  readonly capacity?: number;
  readonly warnDepth?: number;
  readonly events?: Events;
}

/** A queue that nobody else uses. Called once per test. */
export type MakeStage<S extends QueueStage = QueueStage> = (options?: StageOptions) => Promise<S>;

/** Registers tests; each opens a stage of its own, which is closed after it. */
export type QueueTopic = (open: MakeStage) => void;
export type SharedQueueTopic = (open: MakeStage<SharedQueueStage>) => void;

export function useStages<S extends QueueStage>(makeStage: MakeStage<S>): MakeStage<S> {
  const opened: S[] = [];
  afterEach(async () => {
    for (const stage of opened.splice(0)) await stage.close();
  });
  return async (options) => {
    const stage = await makeStage(options);
    opened.push(stage);
    return stage;
  };
}

/** Longer than any test; whoever waits this long waits in vain. */
export const anHour = 3_600_000;

/** Long enough for a busy machine; nobody waits so long unless something is broken. */
export const patienceMs = 20_000;

export const jobsOf = (items: readonly QueueItem<string>[]): string[] =>
  items.map(({ job }) => job);

/** Everything that is ready, in the order in which it is served. */
export async function drain(queue: Queue<string>): Promise<string[]> {
  const jobs: string[] = [];
  for (let item = await queue.dequeue(); item !== null; item = await queue.dequeue()) {
    jobs.push(item.job);
    await queue.ack(item);
  }
  return jobs;
}

export async function take(queue: Queue<string>): Promise<QueueItem<string>> {
  const item = await queue.dequeue({ timeoutMs: patienceMs });
  if (item === null) throw new Error("nothing was there to take");
  return item;
}
