// What the HTTP service asks of the store beyond what producers and workers do.

import type { ApiKeyStore } from "./api-key.ts";
import type { AuditStore } from "./audit.ts";
import type { DeadLetterStore } from "./dead-letter.ts";
import type { EventStore } from "./event.ts";
import type { FigureStore } from "./figures.ts";
import type { ItemStore } from "./item.ts";
import type { JobSearch } from "./job-search.ts";
import type { QueueAdmin } from "./queue-admin.ts";
import type { SessionStore } from "./session.ts";

export interface ServiceStore {
  readonly keys: ApiKeyStore;
  readonly sessions: SessionStore;
  readonly audit: AuditStore;
  readonly events: EventStore;
  readonly items: ItemStore;
  readonly search: JobSearch;
  readonly queues: QueueAdmin;
  readonly deadLetters: DeadLetterStore;
  readonly figures: FigureStore;
}
