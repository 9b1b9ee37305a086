// A full queue or tenant refuses, aloud, and so does a queue that is not active. Counting is a sum of a few
// rows, asked once per flush and only where there is a capacity or a warning depth; several processes may
// overshoot by what they flush at once.

import { judgeCalls, type Wanted } from "../domain/capacity.ts";
import type { MillraceError } from "../domain/errors.ts";
import type { Events } from "../runtime/events.ts";
import type { Enqueued, NewJob, Store } from "../store/store.ts";
import { boundsOf, type CapacityBound, fullError } from "./capacity-bounds.ts";
import type { QueueCache } from "./queue-cache.ts";
import type { TenantCache } from "./tenant-cache.ts";

/** What takes nothing, or what jobs are told that were all enqueued before. */
export type Refusal = MillraceError | readonly (Enqueued | Error)[];

/** The answers to a call as a whole: the first refusal is thrown. */
export function answersOrThrow(refusal: Refusal): Enqueued[] {
  if (refusal instanceof Error) throw refusal;
  return refusal.map((answer) => {
    if (answer instanceof Error) throw answer;
    return answer;
  });
}

/** What most calls want of what is bounded. */
const nothing: Wanted = new Map();

interface Call {
  readonly jobs: readonly NewJob[];
}

export interface CapacityOptions {
  readonly store: Store;
  readonly queues: QueueCache;
  readonly tenants: TenantCache;
  readonly events: Events;
}

export class Capacity {
  readonly #options: CapacityOptions;
  readonly #deep = new Set<string>();

  constructor(options: CapacityOptions) {
    this.#options = options;
  }

  /** Is there no bound on it? */
  isFree(job: NewJob): boolean {
    return this.#boundsOf(job).length === 0;
  }

  /**
   * Which of these groups of jobs do not fit, each judged as a whole and in order. A request that was
   * accepted before is not new: a queue that takes nothing answers it as it did then.
   */
  refusals<Group extends Call>(
    groups: readonly Group[],
  ): Map<Group, Refusal> | Promise<Map<Group, Refusal>> {
    const bounds = new Map<string, CapacityBound>();
    const wanted = groups.map(({ jobs }) => this.#wantedOf(jobs, bounds));
    return bounds.size === 0 ? new Map() : this.#refusalsIn(groups, wanted, bounds);
  }

  #wantedOf(jobs: readonly NewJob[], bounds: Map<string, CapacityBound>): Wanted {
    let wanted: Map<string, number> | null = null;
    for (const job of jobs) {
      for (const bound of this.#boundsOf(job)) {
        bounds.set(bound.name, bound);
        wanted ??= new Map();
        wanted.set(bound.name, (wanted.get(bound.name) ?? 0) + 1);
      }
    }
    return wanted ?? nothing;
  }

  #boundsOf(job: NewJob): readonly CapacityBound[] {
    const { queues, tenants } = this.#options;
    const settings = job.meta?.counted === true ? tenants.known(job.tenant) : undefined;
    return boundsOf(job, queues.byId(job.queueId), settings);
  }

  async #refusalsIn<Group extends Call>(
    groups: readonly Group[],
    wanted: readonly Wanted[],
    bounds: ReadonlyMap<string, CapacityBound>,
  ): Promise<Map<Group, Refusal>> {
    const refused = new Map<Group, Refusal>();
    const capacities = new Map<string, number>();
    for (const { name, capacity } of bounds.values())
      if (capacity !== null) capacities.set(name, capacity);
    const { full, depths } = judgeCalls(wanted, capacities, await this.#depths(bounds));
    for (const [i, group] of groups.entries()) {
      const refusal = full[i];
      const bound = bounds.get(refusal?.bound ?? "");
      if (refusal === undefined || refusal === null || bound === undefined) continue;
      const repeats = await this.#options.store.repeats(group.jobs);
      refused.set(group, repeats ?? fullError(bound, refusal));
    }
    for (const bound of bounds.values()) this.#warn(bound, depths.get(bound.name) ?? 0);
    return refused;
  }

  async #depths(bounds: ReadonlyMap<string, CapacityBound>): Promise<Map<string, number>> {
    const { store } = this.#options;
    const ofQueues = [...bounds.values()].filter(({ tenant }) => tenant === undefined);
    const queueIds = ofQueues.flatMap(({ queue }) => queue?.id ?? []);
    const tenants = new Set([...bounds.values()].flatMap(({ tenant }) => tenant ?? []));
    const depths = new Map<string, number>();
    if (queueIds.length > 0)
      for (const [id, { depth }] of await store.counts(queueIds)) depths.set(`queue:${id}`, depth);
    if (tenants.size === 0) return depths;
    for (const { tenant, queueId, jobs } of await store.flow.tenantDepths([...tenants])) {
      depths.set(`queue:${queueId}:${tenant}`, jobs);
      depths.set(`tenant:${tenant}`, (depths.get(`tenant:${tenant}`) ?? 0) + jobs);
    }
    return depths;
  }

  /** Once per crossing. */
  #warn({ name, queue, tenant, warnDepth }: CapacityBound, depth: number): void {
    if (warnDepth === null) return;
    if (depth <= warnDepth) {
      this.#deep.delete(name);
      return;
    }
    if (this.#deep.has(name)) return;
    this.#deep.add(name);
    const { events } = this.#options;
    if (tenant !== undefined) events.emit("tenant.deep", { tenant, depth, warnDepth });
    else if (queue !== undefined)
      events.emit("queue.deep", { queue: queue.name, depth, warnDepth });
  }
}
