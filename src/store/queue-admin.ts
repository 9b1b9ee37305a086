// What operators do with queues beyond their settings.

import type { Queue } from "./queue.ts";

/** A queue with what only people look at. */
export interface QueueRecord extends Queue {
  readonly externalId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** How a queue does at this moment. */
export interface QueueFigures {
  readonly id: number;
  /** "": shared by all tenants. */
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  readonly isActive: boolean;
  readonly enqueued: number;
  readonly completed: number;
  readonly retried: number;
  /** How many became dead letters, ever. */
  readonly died: number;
  /** Scheduled and ready. */
  readonly waiting: number;
  readonly running: number;
  /** Dead letters that are not discarded. */
  readonly dead: number;
  /** How long the oldest ready job has been ready; null: none is. */
  readonly oldestReadySeconds: number | null;
}

export interface MinuteCounts {
  readonly enqueued: number;
  readonly completed: number;
  /** Runs that failed and are tried again. */
  readonly retried: number;
  readonly dead: number;
}

export interface QueueSeries {
  /** Every minute of the span, the oldest first; the last one is not over. */
  readonly minutes: readonly { readonly at: Date; readonly counts: MinuteCounts }[];
  /** The same span as one sum for each queue that did something. */
  readonly queues: ReadonlyMap<number, MinuteCounts>;
  /** Where the last minute stands, by the database's clock. */
  readonly readAt: Date;
}

/** How long counts are kept by the minute; older ones are one sum per queue. */
export const mostSeriesMinutes = 60;

export interface QueueAdmin {
  /** All of them, from counters and indexes only. */
  figures(): Promise<QueueFigures[]>;
  /** All, or a tenant's own and the shared ones. */
  list(tenant: string | null): Promise<QueueRecord[]>;
  find(id: number): Promise<QueueRecord | null>;
  /** The tenant's own queue of this name, else the shared one. */
  resolve(tenant: string, name: string): Promise<Queue | null>;
  /** False: the tenant has one of this name. */
  create(tenant: string, name: string): Promise<boolean>;
  setExternalId(id: number, externalId: string | null): Promise<void>;
  /** Takes out what waits, a batch at a time; says of how many. */
  purge(id: number): Promise<number>;
  /** What these queues did in the last minutes. */
  series(ids: readonly number[], minutes: number): Promise<QueueSeries>;
  /** Every item that is not deleted, wherever it is. */
  countItems(id: number): Promise<number>;
  /** Removes the queue and all its items; what runs is not asked. */
  delete(id: number, actor: string, count: number): Promise<void>;
}
