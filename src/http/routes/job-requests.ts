// From the jobs of a request to what the client enqueues.

import type { JobRequest } from "../../client/intake.ts";
import type { EnqueueOptions } from "../../client/new-job.ts";
import { isReserved } from "../../client/queue-cache.ts";
import { MillraceError } from "../../domain/errors.ts";
import { defineJob } from "../../worker/job-definition.ts";
import type { NewJobBody } from "../contract/jobs.ts";
import { type Identity, tenantToActOn } from "../identity.ts";
import { problemAt } from "../problem.ts";
import { asksOf, asksOfAll } from "../same-request.ts";
import type { Service } from "../served.ts";

type NewJob = NewJobBody;

/**
 * Most jobs of one request are of one type and one queue: what they share is found once. `key` is the
 * request's own, of all its jobs together.
 */
export async function toRequests(
  jobs: readonly NewJob[],
  key: string | undefined,
  identity: Identity,
  { millrace }: Service,
): Promise<JobRequest[]> {
  const shared = new Map<string, Shared>();
  const requests: JobRequest[] = [];
  let last: Shared | undefined;
  for (let i = 0; i < jobs.length; i++) {
    const job = jobs[i] as NewJob;
    if (last === undefined || !isAlike(job, last)) {
      const about = describeKind(job, millrace);
      const known = shared.get(about.key) ?? (await findShared(about, identity, millrace));
      shared.set(about.key, known);
      last = known;
    }
    const { definition, queue } = last;
    const options = toOptions(job, last.plain);
    const asks = options.key === undefined ? undefined : asksOf(beyondTheJob(job));
    requests.push({ definition, queue, payload: job.payload, options, asks });
  }
  return key === undefined ? requests : underOneKey(requests, jobs, key);
}

/** The client compares these by itself. */
const beyondTheJob = ({ type: _, queue: __, tenant_id: ___, payload: ____, ...more }: NewJob) =>
  more;

/** Each tenant's first job has the key itself, so that no other request can have it. */
function underOneKey(
  requests: readonly JobRequest[],
  jobs: readonly NewJob[],
  key: string,
): JobRequest[] {
  const tenantOf = ({ options }: JobRequest) => options.tenant ?? "default";
  const asks = asksOfAll(requests.map((one, i) => ({ ...jobs[i], tenant_id: tenantOf(one) })));
  const named = new Set<string>();
  return requests.map((one, i) => {
    const tenant = tenantOf(one);
    const own = named.has(tenant) ? `${key}/${i}` : key;
    named.add(tenant);
    return { ...one, asks, options: { ...one.options, key: oneKey(own, one.options.key) ?? own } };
  });
}

/** What jobs of one kind have in common, and the first of them. */
interface Shared extends Pick<JobRequest, "definition" | "queue"> {
  readonly of: NewJob;
  readonly isGoverned: boolean;
  readonly plain: { readonly tenant: string };
}

/** Without looking anything up. A governed job may name another tenant in its payload. */
const isAlike = (job: NewJob, { of, isGoverned }: Shared): boolean =>
  !isGoverned &&
  job.type === of.type &&
  job.queue === of.queue &&
  job.tenant_id === of.tenant_id &&
  job.category === of.category &&
  sameLabels(job.labels, of.labels);

const sameLabels = (a: readonly string[] = [], b: readonly string[] = []): boolean =>
  a.length === b.length && a.every((label, i) => label === b[i]);

function describeKind(job: NewJob, { config }: Service["millrace"]) {
  const category = config.categories.ofJob(job.type, job.category);
  const named = category === undefined ? job.tenant_id : governedTenant(job);
  const labels = job.labels ?? [];
  const key = [job.type, job.queue, category ?? "", named ?? "", ...labels].join("\n");
  return { key, job, category, named };
}

async function findShared(
  { job, category, named }: ReturnType<typeof describeKind>,
  identity: Identity,
  { queueCache }: Service["millrace"],
): Promise<Shared> {
  const tenant = tenantToActOn(identity, named);
  const { type, queue } = job;
  refuseReserved("body.queue", queue);
  return {
    of: job,
    isGoverned: category !== undefined,
    plain: Object.freeze({ tenant }),
    definition: defineJob({
      ...{ type, queue, labels: job.labels ?? [] },
      ...(category === undefined ? {} : { category }),
    }),
    queue:
      identity.tenant === null
        ? await queueCache.resolve(tenant, queue)
        : await queueCache.resolveOwn(tenant, queue),
  };
}

/** What is delivered to a webhook is signed: nobody else may say what. */
export function refuseReserved(path: string, queue: string): void {
  if (isReserved(queue))
    throw problemAt(path, "names that begin with millrace. are Millrace's own");
}

/** A governed job says in its envelope whose it is; the request may repeat that, not contradict it. */
function governedTenant(job: NewJob): string | undefined {
  const inside = envelopeTenant(job.payload);
  if (inside !== undefined && job.tenant_id !== undefined && inside !== job.tenant_id)
    throw new MillraceError("TENANT_FORBIDDEN");
  return job.tenant_id ?? inside;
}

const rare = [
  ...["idempotency_key", "priority", "correlation_id", "reference"],
  ...["delay_ms", "expires_in_ms", "max_attempts", "ordering_key", "limit_key"],
] as readonly (keyof NewJob)[];

function toOptions(job: NewJob, plain: Shared["plain"]): EnqueueOptions {
  if (rare.every((name) => job[name] === undefined)) return plain;
  const options: { -readonly [K in keyof EnqueueOptions]: EnqueueOptions[K] } = {
    ...plain,
    ...laneOptions(job),
  };
  if (job.idempotency_key !== undefined) options.key = job.idempotency_key;
  if (job.priority !== undefined) options.priority = job.priority;
  if (job.correlation_id !== undefined) options.correlationId = job.correlation_id;
  if (job.reference !== undefined) options.reference = job.reference;
  if (job.delay_ms !== undefined) options.delayMs = job.delay_ms;
  if (job.expires_in_ms !== undefined) options.expiresInMs = job.expires_in_ms;
  if (job.max_attempts !== undefined) options.maxAttempts = job.max_attempts;
  return options;
}

/** A job waits in one lane at most. */
export function laneOptions({
  ordering_key,
  limit_key,
}: {
  readonly ordering_key?: string | undefined;
  readonly limit_key?: string | undefined;
}): Pick<EnqueueOptions, "orderingKey" | "limitKey"> {
  if (ordering_key !== undefined && limit_key !== undefined)
    throw new MillraceError("REQUEST_INVALID", "body.limit_key: not beside an ordering_key");
  return {
    ...(ordering_key === undefined ? {} : { orderingKey: ordering_key }),
    ...(limit_key === undefined ? {} : { limitKey: limit_key }),
  };
}

export function oneKey(header: string | undefined, body: string | undefined): string | undefined {
  if (header === undefined || body === undefined || header === body) return body ?? header;
  throw new MillraceError(
    "REQUEST_INVALID",
    "headers.idempotency-key: it contradicts the body's idempotency_key",
  );
}

function envelopeTenant(payload: unknown): string | undefined {
  if (typeof payload !== "object" || payload === null || !("tenant_id" in payload))
    return undefined;
  return String(payload.tenant_id);
}
