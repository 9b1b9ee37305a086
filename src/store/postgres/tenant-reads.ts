// What is read for a call over HTTP. For a key of a tenant it is read as that tenant, where the database
// can check that; otherwise as ourselves, and the store's and the service's own conditions are what there is.

import type { ServiceReads } from "../service.ts";
import { createKeyReads } from "./api-keys.ts";
import { createAuditStore } from "./audit-trail.ts";
import type { Database, Reader } from "./database.ts";
import { createDeadLetterStore } from "./dead-letter-search.ts";
import { readShare } from "./item-share.ts";
import { readItemStats } from "./item-stats.ts";
import { findItem } from "./items.ts";
import { searchJobs } from "./job-search.ts";
import { findQueue, listQueueRecords } from "./queue-admin.ts";
import { findJobs } from "./read.ts";
import { rowSecurity } from "./row-security.ts";
import { createTriggerReads } from "./triggers.ts";
import { listWebhooks } from "./webhooks.ts";

const createReads = (reader: Reader, tenant: string | null, database: Database): ServiceReads => ({
  find: (ids) => findJobs(reader, ids),
  item: (id) => findItem(reader, id),
  search: { jobs: (filter, before, limit) => searchJobs(reader, filter, before, limit) },
  deadLetters: createDeadLetterStore(reader),
  queues: {
    list: (tenant) => listQueueRecords(reader, tenant),
    find: (id) => findQueue(reader, id),
  },
  audit: createAuditStore(reader),
  triggers: createTriggerReads(reader),
  webhooks: { list: () => listWebhooks((source, values) => reader.query(source, values)) },
  keys: createKeyReads(reader),
  stats: (queue) =>
    tenant === null || queue.tenant === tenant
      ? readItemStats(database, queue.id)
      : readShare({ own: reader, all: database }, queue.id, tenant),
});

const mostKnown = 1_000;
const askAgainMs = 60_000;

export class TenantReads {
  readonly #database: Database;
  readonly #all: ServiceReads;
  readonly #byTenant = new Map<string, ServiceReads>();
  #isOn = false;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(database: Database) {
    this.#database = database;
    this.#all = createReads(database, null, database);
  }

  /** null: a key of all tenants. */
  of(tenant: string | null): ServiceReads {
    if (tenant === null) return this.#all;
    const known = this.#byTenant.get(tenant);
    if (known !== undefined) return known;
    const reader: Reader = {
      query: async (source, values) =>
        (await this.isSecured())
          ? this.#database.queryAs(tenant, source, values)
          : this.#database.query(source, values),
    };
    const reads = createReads(reader, tenant, this.#database);
    if (this.#byTenant.size >= mostKnown) this.#byTenant.clear();
    this.#byTenant.set(tenant, reads);
    return reads;
  }

  /** Once it is on it stays on for us: a role that is taken away is an error, not a way around. */
  async isSecured(): Promise<boolean> {
    if (this.#isOn || performance.now() - this.#askedAt < askAgainMs) return this.#isOn;
    const [row] = await this.#database.query<{ is_on: boolean }>(rowSecurity);
    this.#isOn = row?.is_on === true;
    this.#askedAt = performance.now();
    return this.#isOn;
  }
}
