// Which token buckets a job draws from: its queue's, its tenant's, and those of its type and key.

import { checkText } from "../domain/check-options.ts";
import type { Tenant } from "../store/flow.ts";
import type { NewJob, Queue } from "../store/store.ts";
import type { JobDefinition } from "../worker/job-definition.ts";
import type { DoorBucket } from "./door.ts";

type Definition = JobDefinition<unknown, unknown, unknown>;

const none: readonly DoorBucket[] = [];

/** Most jobs draw from none. */
export function bucketsFor(
  { rules, type }: Definition,
  payload: unknown,
  { tenant }: NewJob,
  queue: Queue | undefined,
  settings: Tenant | undefined,
): readonly DoorBucket[] {
  const ofQueue = queue?.rateLimit ?? null;
  const ofTenantHere = queue?.tenantRateLimit ?? null;
  const ofTenant = settings?.rateLimit ?? null;
  const byKey = rules?.rateLimit;
  if (ofQueue === null && ofTenantHere === null && ofTenant === null && byKey === undefined)
    return none;
  const buckets: DoorBucket[] = [];
  if (queue !== undefined && ofQueue !== null)
    buckets.push({ key: `queue:${queue.id}`, rate: ofQueue, of: `queue "${queue.name}"` });
  if (queue !== undefined && ofTenantHere !== null) {
    const of = `tenant "${tenant}" in queue "${queue.name}"`;
    buckets.push({ key: `queue:${queue.id}:${tenant}`, rate: ofTenantHere, of });
  }
  if (ofTenant !== null)
    buckets.push({ key: `tenant:${tenant}`, rate: ofTenant, of: `tenant "${tenant}"` });
  const key = byKey?.key(payload);
  if (byKey !== undefined && key !== undefined) {
    const rate = { limit: byKey.limit, windowMs: byKey.windowMs };
    // The key is of the payload: it may be in no message. One that PostgreSQL cannot store would fail all
    // calls that are asked for with it.
    const text = checkText("The key of a rate limit", key, 500);
    buckets.push({ key: `type:${type}:${tenant}:${text}`, rate, of: `its ${type} key` });
  }
  return buckets;
}
