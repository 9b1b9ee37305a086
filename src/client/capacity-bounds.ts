// Which capacities bound a job: its queue's, its tenant's in the queue, and its tenant's everywhere.

import type { Full } from "../domain/capacity.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Tenant } from "../store/flow.ts";
import type { NewJob, Queue } from "../store/store.ts";

/** Where jobs are counted, and how many may be there. */
export interface CapacityBound {
  readonly name: string;
  readonly queue?: Queue;
  readonly tenant?: string;
  readonly capacity: number | null;
  readonly warnDepth: number | null;
  /** The queue takes nothing at all. */
  readonly inactive?: boolean;
}

const none: readonly CapacityBound[] = [];

/** Most jobs have none. */
export function boundsOf(
  { tenant, meta }: NewJob,
  queue: Queue | undefined,
  settings: Tenant | undefined,
): readonly CapacityBound[] {
  if (queue?.isActive === false)
    return [{ name: `inactive:${queue.id}`, queue, inactive: true, capacity: 0, warnDepth: null }];
  const ofQueue = queue !== undefined && (queue.capacity !== null || queue.warnDepth !== null);
  if (!ofQueue && meta?.counted === undefined) return none;
  const bounds: CapacityBound[] = [];
  if (ofQueue) {
    const { capacity, warnDepth } = queue;
    bounds.push({ name: `queue:${queue.id}`, queue, capacity, warnDepth });
  }
  if (queue !== undefined && queue.tenantCapacity !== null) {
    const capacity = queue.tenantCapacity;
    bounds.push({ name: `queue:${queue.id}:${tenant}`, queue, tenant, capacity, warnDepth: null });
  }
  if (settings !== undefined && countsEverywhere(settings)) {
    const { capacity, warnDepth } = settings;
    bounds.push({ name: `tenant:${tenant}`, tenant, capacity, warnDepth });
  }
  return bounds;
}

const countsEverywhere = ({ capacity, warnDepth }: Tenant): boolean =>
  capacity !== null || warnDepth !== null;

/** A job that counts for its tenant says so: whoever ends it counts it out. */
export function counted(job: NewJob, queue: Queue, settings: Tenant | undefined): NewJob {
  const counts = settings !== undefined && countsEverywhere(settings);
  if (queue.tenantCapacity === null && !counts) return job;
  const { tenantSlot = 0, lane = 0 } = job;
  return { ...job, tenantSlot, lane, meta: { ...job.meta, counted: true } };
}

export function fullError(
  { queue, tenant, inactive }: CapacityBound,
  { depth, capacity, wanted }: Full,
): MillraceError {
  if (inactive === true)
    return new MillraceError("QUEUE_INACTIVE", `Queue "${queue?.name}" does not accept jobs.`);
  const counts = { depth, capacity, wanted };
  const holds = `holds ${depth} of ${capacity} jobs`;
  if (tenant === undefined)
    return new MillraceError(
      "QUEUE_FULL",
      `Queue "${queue?.name}" ${holds}; ${wanted} more do not fit.`,
      { details: { queue: queue?.name, ...counts } },
    );
  const where = queue === undefined ? "" : ` in queue "${queue.name}"`;
  const details = {
    limit: queue === undefined ? "tenant" : "tenant_in_queue",
    tenant,
    ...(queue === undefined ? {} : { queue: queue.name }),
    ...counts,
  };
  return new MillraceError(
    "TENANT_FULL",
    `Tenant "${tenant}" ${holds}${where}; ${wanted} more do not fit.`,
    { details },
  );
}
