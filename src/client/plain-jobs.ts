// Jobs that differ from others of their definition in id and payload only. What has to be known of such a job on its
// way in (its queue and tenant, and that nothing limits, places or names it) is worked out once and holds for a while.

import type { Config } from "../config.ts";
import { keptVersion } from "../domain/payload-version.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type { NewJob, Queue } from "../store/store.ts";
import type { JobDefinition } from "../worker/job-definition.ts";
import { written } from "./new-job.ts";
import type { QueueCache } from "./queue-cache.ts";
import type { TenantCache } from "./tenant-cache.ts";

type Definition = JobDefinition<unknown, unknown, unknown>;

export interface PlainJobsOptions {
  readonly queues: Pick<QueueCache, "byId" | "changes" | "freshUntil">;
  readonly tenants: Pick<TenantCache, "changes" | "freshUntil" | "known">;
  readonly config: Config;
  readonly events: Events;
  readonly clock: Clock;
}

interface Known {
  readonly job: NewJob;
  readonly until: number;
  readonly ofQueues: number;
  readonly ofTenants: number;
}

export class PlainJobs {
  readonly #options: PlainJobsOptions;
  readonly #known = new WeakMap<Definition, Known>();

  constructor(options: PlainJobsOptions) {
    this.#options = options;
  }

  /** One that is like the one before, if its payload keeps all rules; null: it has to be looked at. */
  make(definition: Definition, payload: unknown): [NewJob] | null {
    const { config, events } = this.#options;
    const before = this.#before(definition);
    if (before === null || keptVersion(definition.payloadVersion, payload) !== undefined)
      return null;
    const given = payload === undefined ? null : payload;
    const text = written(definition, given, undefined, config, events);
    return [{ ...before, id: uuidv7(), payload: text }];
  }

  #before(definition: Definition): NewJob | null {
    const known = this.#known.get(definition);
    if (known === undefined) return null;
    const { queues, tenants, clock } = this.#options;
    const isSo =
      known.ofQueues === queues.changes &&
      known.ofTenants === tenants.changes &&
      clock.monotonic() < known.until;
    return isSo ? known.job : null;
  }

  /** One that was made without options, as it is about to be sent. */
  note(definition: Definition, job: NewJob): void {
    const { queues, tenants } = this.#options;
    const queue = queues.byId(job.queueId);
    if (queue === undefined || !isOpen(queue) || !isPlain(definition, job)) return;
    if (tenants.known(job.tenant) !== undefined) return;
    this.#known.set(definition, {
      job,
      until: Math.min(queues.freshUntil(definition.queue), tenants.freshUntil),
      ofQueues: queues.changes,
      ofTenants: tenants.changes,
    });
  }
}

/** Does nothing of it come from its payload, and is it no more than a row? */
const isPlain = ({ rules, labels, schema }: Definition, { meta, lane }: NewJob): boolean =>
  rules === null &&
  labels === undefined &&
  schema === undefined &&
  meta === undefined &&
  lane === undefined;

const isOpen = ({ controlled, rateLimit, tenantRateLimit, tenantCapacity }: Queue): boolean =>
  !controlled && rateLimit === null && tenantRateLimit === null && tenantCapacity === null;
