// A full queue refuses, aloud, and so does one that is not active. Counting is a sum of a few rows, asked once per flush and only for queues
// that have a capacity or a warning depth; several processes may overshoot by what they flush at once.

import { MillraceError } from "../domain/errors.ts";
import type { Events } from "../runtime/events.ts";
import type { Enqueued, NewJob, Store } from "../store/store.ts";
import type { QueueCache } from "./queue-cache.ts";

/** That the queue takes nothing, or what jobs are told that were all enqueued before. */
export type Refusal = MillraceError | readonly (Enqueued | Error)[];

/** The answers to a call as a whole: the first refusal is thrown. */
export function answersOrThrow(refusal: Refusal): Enqueued[] {
  if (refusal instanceof Error) throw refusal;
  return refusal.map((answer) => {
    if (answer instanceof Error) throw answer;
    return answer;
  });
}

export class Capacity {
  readonly #store: Store;
  readonly #queues: QueueCache;
  readonly #events: Events;
  readonly #deep = new Set<number>();

  constructor(store: Store, queues: QueueCache, events: Events) {
    this.#store = store;
    this.#queues = queues;
    this.#events = events;
  }

  /**
   * Which of these groups of jobs do not fit, each judged as a whole and in order. A request that was
   * accepted before is not new: a queue that takes nothing answers it as it did then.
   */
  refusals<Group extends { readonly jobs: readonly NewJob[] }>(
    groups: readonly Group[],
  ): Map<Group, Refusal> | Promise<Map<Group, Refusal>> {
    const bounded = this.#boundedQueues(groups);
    return bounded.length === 0 ? new Map() : this.#refusalsIn(bounded, groups);
  }

  async #refusalsIn<Group extends { readonly jobs: readonly NewJob[] }>(
    bounded: readonly number[],
    groups: readonly Group[],
  ): Promise<Map<Group, Refusal>> {
    const refused = new Map<Group, Refusal>();
    const counts = await this.#store.counts(bounded);
    const depths = new Map([...counts].map(([id, count]) => [id, count.depth]));
    for (const group of groups) {
      const error = this.#judge(group.jobs, depths);
      if (error !== null) refused.set(group, (await this.#store.repeats(group.jobs)) ?? error);
    }
    for (const [id, depth] of depths) this.#warn(id, depth);
    return refused;
  }

  #boundedQueues(groups: readonly { readonly jobs: readonly NewJob[] }[]): number[] {
    const ids = new Set<number>();
    for (const { jobs } of groups) for (const job of jobs) ids.add(job.queueId);
    return [...ids].filter((id) => {
      const queue = this.#queues.byId(id);
      if (queue === undefined) return false;
      return !queue.isActive || queue.capacity !== null || queue.warnDepth !== null;
    });
  }

  #judge(jobs: readonly NewJob[], depths: Map<number, number>): MillraceError | null {
    const wanted = new Map<number, number>();
    for (const { queueId } of jobs) wanted.set(queueId, (wanted.get(queueId) ?? 0) + 1);
    for (const [id, count] of wanted) {
      const queue = this.#queues.byId(id);
      if (queue?.isActive === false)
        return new MillraceError("QUEUE_INACTIVE", `Queue "${queue.name}" does not accept jobs.`);
      const depth = depths.get(id) ?? 0;
      if (queue === undefined || queue.capacity === null || depth + count <= queue.capacity)
        continue;
      return new MillraceError(
        "QUEUE_FULL",
        `Queue "${queue.name}" holds ${depth} of ${queue.capacity} jobs; ${count} more do not fit.`,
        { details: { queue: queue.name, depth, capacity: queue.capacity, wanted: count } },
      );
    }
    for (const [id, count] of wanted) {
      const depth = depths.get(id);
      if (depth !== undefined) depths.set(id, depth + count);
    }
    return null;
  }

  /** Once per crossing. */
  #warn(id: number, depth: number): void {
    const queue = this.#queues.byId(id);
    if (queue === undefined || queue.warnDepth === null) return;
    if (depth <= queue.warnDepth) this.#deep.delete(id);
    else if (!this.#deep.has(id)) {
      this.#deep.add(id);
      this.#events.emit("queue.deep", { queue: queue.name, depth, warnDepth: queue.warnDepth });
    }
  }
}
