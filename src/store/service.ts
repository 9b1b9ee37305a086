// What the HTTP service asks of the store beyond what producers and workers do.

import type { Job } from "../domain/job.ts";
import type { ApiKeyStore } from "./api-key.ts";
import type { AuditStore } from "./audit.ts";
import type { DeadLetterStore } from "./dead-letter.ts";
import type { EventStore } from "./event.ts";
import type { FigureStore } from "./figures.ts";
import type { Item, ItemStats, ItemStore } from "./item.ts";
import type { JobSearch } from "./job-search.ts";
import type { Queue } from "./queue.ts";
import type { QueueAdmin } from "./queue-admin.ts";
import type { SessionStore } from "./session.ts";
import type { TenantAdmin } from "./tenant-admin.ts";
import type { TriggerStore } from "./triggers.ts";
import type { WebhookStore } from "./webhook.ts";

/** What a call reads: for a key of a tenant as that tenant, checked by the database too. */
export interface ServiceReads {
  find(ids: readonly string[]): Promise<Job[]>;
  item(id: string): Promise<Item | null>;
  readonly search: JobSearch;
  readonly deadLetters: DeadLetterStore;
  readonly queues: Pick<QueueAdmin, "list" | "find">;
  readonly audit: Pick<AuditStore, "list">;
  readonly triggers: Pick<TriggerStore, "find" | "list">;
  readonly webhooks: Pick<WebhookStore, "list">;
  readonly keys: Pick<ApiKeyStore, "find" | "list">;
  /** A queue's figures; of a queue that all share, the tenant's own part. */
  stats(queue: Pick<Queue, "id" | "tenant">): Promise<ItemStats>;
}

export interface ServiceStore {
  /** null: of all tenants. */
  readsOf(tenant: string | null): ServiceReads;
  /** Whether row-level security is on. */
  isSecured(): Promise<boolean>;
  readonly keys: ApiKeyStore;
  readonly sessions: SessionStore;
  readonly audit: AuditStore;
  readonly events: EventStore;
  readonly items: ItemStore;
  readonly queues: QueueAdmin;
  readonly figures: FigureStore;
  readonly tenants: TenantAdmin;
}
