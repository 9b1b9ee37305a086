// What operators do with queues beyond their settings.

import type { Queue } from "./queue.ts";

/** A queue with what only people look at. */
export interface QueueRecord extends Queue {
  readonly externalId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface QueueAdmin {
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
  /** Every item that is not deleted, wherever it is. */
  countItems(id: number): Promise<number>;
  /** Removes the queue and all its items; what runs is not asked. */
  delete(id: number, actor: string, count: number): Promise<void>;
}
