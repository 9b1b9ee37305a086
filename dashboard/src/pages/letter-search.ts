// What the address of the dead letters says, as the service understands it.

import type { Query } from "../api/service.ts";

export interface LetterSearch {
  readonly status?: string;
  readonly fingerprint?: string;
  readonly queue?: string;
  readonly type?: string;
  readonly class?: string;
  readonly tenant?: string;
  readonly cursor?: string;
}

/** `queue` in the address is the queue's number: names are unique per tenant only. */
export const filterOf = (search: LetterSearch): Query => ({
  error_fingerprint: search.fingerprint,
  queue_id: search.queue,
  job_type: search.type,
  error_class: search.class,
  tenant_id: search.tenant,
});
