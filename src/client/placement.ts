// Where a job stands in its queue: its tenant's slot and its key's lane. Jobs of plain queues are left as
// they are; a tenant that comes to a queue for the first time, and the first key of a queue, are told to
// the store once.

import type { FlowStore } from "../store/flow.ts";
import type { NewJob, Queue } from "../store/store.ts";
import type { QueueCache } from "./queue-cache.ts";

const mostKnown = 100_000;

export class Placement {
  readonly #flow: FlowStore;
  readonly #queues: QueueCache;
  readonly #slots = new Map<string, number>();
  readonly #laned = new Set<number>();
  readonly #asking = new Map<string, Promise<number>>();

  constructor(flow: FlowStore, queues: QueueCache) {
    this.#flow = flow;
    this.#queues = queues;
  }

  place(job: NewJob, queue: Queue): NewJob | Promise<NewJob> {
    const { lane = 0 } = job;
    const slot = this.#knownSlot(job.tenant, queue);
    const lanesKnown = lane === 0 || queue.laned || this.#laned.has(queue.id);
    if (slot === undefined || !lanesKnown) return this.#prepare(job, queue);
    return placed(job, slot, queue);
  }

  #knownSlot(tenant: string, queue: Queue): number | undefined {
    if (!queue.fair || queue.firstTenant === tenant) return 0;
    return this.#slots.get(`${queue.id}:${tenant}`);
  }

  async #prepare(job: NewJob, queue: Queue): Promise<NewJob> {
    const { lane = 0, tenant } = job;
    const slot = this.#knownSlot(tenant, queue) ?? (await this.#askSlot(queue.id, tenant));
    if (lane > 0 && !queue.laned) {
      await this.#flow.useLanes(queue.id);
      this.#laned.add(queue.id);
    }
    // The queue has become a controlled one.
    if ((slot > 0 || lane > 0) && !queue.controlled) this.#queues.invalidate();
    return placed(job, slot, queue);
  }

  /** Calls that come together ask once. */
  async #askSlot(queueId: number, tenant: string): Promise<number> {
    const name = `${queueId}:${tenant}`;
    const asking = this.#asking.get(name) ?? this.#flow.slotOf(queueId, tenant);
    this.#asking.set(name, asking);
    try {
      const slot = await asking;
      if (this.#slots.size >= mostKnown) this.#slots.clear();
      this.#slots.set(name, slot);
      return slot;
    } finally {
      this.#asking.delete(name);
    }
  }
}

/** The job was made a moment ago and is nobody else's yet: a copy would cost more than all the rest here. */
function placed(job: NewJob, slot: number, queue: Queue): NewJob {
  const { lane = 0 } = job;
  if (slot === 0 && lane === 0 && !queue.controlled) return job;
  return Object.assign(job, { tenantSlot: slot, lane });
}
