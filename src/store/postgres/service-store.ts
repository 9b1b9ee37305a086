import type { ItemStore } from "../item.ts";
import type { ServiceStore } from "../service.ts";
import { createApiKeyStore } from "./api-keys.ts";
import { createAuditStore } from "./audit-trail.ts";
import type { Database } from "./database.ts";
import { createDeadLetterStore } from "./dead-letter-search.ts";
import { createEventStore } from "./event-log.ts";
import { createFigureStore } from "./figures.ts";
import { completeItem, failItem, releaseItem } from "./item-settle.ts";
import { readItemStats } from "./item-stats.ts";
import { findItem } from "./items.ts";
import { searchJobs } from "./job-search.ts";
import { createQueueAdmin } from "./queue-admin.ts";
import { renewItem, takeItems } from "./robot-claims.ts";
import { createSessionStore } from "./sessions.ts";

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
  return {
    keys: createApiKeyStore(database),
    sessions: createSessionStore(database),
    audit: createAuditStore(database),
    events: createEventStore(database),
    items,
    search: { jobs: (filter, before, limit) => searchJobs(database, filter, before, limit) },
    queues: { ...queues, purge: (id) => withPartitions(() => queues.purge(id)) },
    deadLetters: createDeadLetterStore(database),
    figures: createFigureStore(database),
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
