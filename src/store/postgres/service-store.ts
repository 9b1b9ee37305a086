import type { ItemStore } from "../item.ts";
import type { ServiceStore } from "../service.ts";
import { createApiKeyStore } from "./api-keys.ts";
import { createAuditStore } from "./audit-trail.ts";
import type { Database } from "./database.ts";
import { createEventStore } from "./event-log.ts";
import { createFigureStore } from "./figures.ts";
import { completeItem, failItem, releaseItem } from "./item-settle.ts";
import { readItemStats } from "./item-stats.ts";
import { findItem } from "./items.ts";
import { createQueueAdmin } from "./queue-admin.ts";
import { renewItem, takeItems } from "./robot-claims.ts";
import { createSessionStore } from "./sessions.ts";
import { createTenantAdmin } from "./tenant-erase.ts";
import { TenantReads } from "./tenant-reads.ts";

type WithPartitions = <T>(body: () => Promise<T>) => Promise<T>;

export function createServiceStore(
  database: Database,
  withPartitions: WithPartitions,
): ServiceStore {
  const items = createItemStore(database, withPartitions);
  const queues = createQueueAdmin(database, async (id) => {
    const stats = await items.stats(id);
    return stats.new + stats.inProgress + stats.done + stats.failed;
  });
  const tenants = createTenantAdmin(database);
  const reads = new TenantReads(database);
  return {
    readsOf: (tenant) => reads.of(tenant),
    isSecured: () => reads.isSecured(),
    keys: createApiKeyStore(database),
    sessions: createSessionStore(database),
    audit: createAuditStore(database),
    events: createEventStore(database),
    items,
    queues: { ...queues, purge: (id) => withPartitions(() => queues.purge(id)) },
    figures: createFigureStore(database),
    tenants: {
      ...tenants,
      eraseWaiting: (name) => withPartitions(() => tenants.eraseWaiting(name)),
    },
  };
}

const createItemStore = (database: Database, withPartitions: WithPartitions): ItemStore => ({
  take: (wishes) => takeItems(database, wishes),
  renew: (hold, leaseMs) => renewItem(database, hold, leaseMs),
  complete: (hold, result, process) =>
    withPartitions(() => completeItem(database, hold, result, process)),
  fail: (hold, failure, process) =>
    withPartitions(() => failItem(database, hold, failure, process)),
  async release(holds, process) {
    let released = 0;
    for (const hold of holds) if ((await releaseItem(database, hold, process)) !== null) released++;
    return released;
  },
  find: (id) => findItem(database, id),
  stats: (queueId) => readItemStats(database, queueId),
});
