import type { JobRequest } from "../../client/intake.ts";
import type { EnqueueOptions } from "../../client/new-job.ts";
import { MillraceError } from "../../domain/errors.ts";
import type { Job } from "../../domain/job.ts";
import { defineJob } from "../../worker/job-definition.ts";
import * as contract from "../contract/jobs.ts";
import { type Identity, maySee, tenantToActOn, tenantToRead } from "../identity.ts";
import { readCursor, uuidShape, writeCursor } from "../input.ts";
import { type Call, type Served, type Service, serve } from "../served.ts";
import { jobView, summaryView } from "../views.ts";

const enqueue = serve(contract.enqueueJob, async ({ body, headers, identity }, service) => {
  const isMany = "jobs" in body;
  const key = headers["idempotency-key"];
  const requests = isMany
    ? await toRequests(
        body.jobs,
        (i) => (key === undefined ? key : `${key}/${i}`),
        identity,
        service,
      )
    : await toRequests([body], () => key, identity, service);
  const enqueued = await service.millrace.enqueueInto(requests);
  service.taker.wake([...new Set(requests.map(({ queue }) => queue.id))]);
  const isOld = enqueued.every(({ existing }) => existing);
  const status = isOld ? (200 as const) : (201 as const);
  const [first] = enqueued;
  if (isMany || first === undefined) return { status, body: { jobs: enqueued } };
  return { status, body: first };
});

type NewJob = contract.NewJobBody;

/** Most jobs of one request are of one type and one queue: what they share is found once. */
async function toRequests(
  jobs: readonly NewJob[],
  keyOf: (index: number) => string | undefined,
  identity: Identity,
  { millrace }: Service,
): Promise<JobRequest[]> {
  const { config, queueCache } = millrace;
  const shared = new Map<string, Pick<JobRequest, "definition" | "queue"> & { tenant: string }>();
  const requests: JobRequest[] = [];
  for (const [i, job] of jobs.entries()) {
    const { type, queue } = job;
    const category = job.category ?? config.categories.categoryOf(type)?.name;
    const named = category === undefined ? job.tenant_id : governedTenant(job);
    const about = [type, queue, category ?? "", named ?? ""].join("\n");
    let common = shared.get(about);
    if (common === undefined) {
      const tenant = tenantToActOn(identity, named);
      const definition = defineJob({
        type,
        queue,
        ...(category === undefined ? {} : { category }),
      });
      common = { definition, tenant, queue: await queueCache.resolve(tenant, queue) };
      shared.set(about, common);
    }
    const { tenant, ...rest } = common;
    requests.push({ ...rest, payload: job.payload, options: toOptions(job, tenant, keyOf(i)) });
  }
  return requests;
}

/** A governed job says in its envelope whose it is; the request may repeat that, not contradict it. */
function governedTenant(job: NewJob): string | undefined {
  const inside = envelopeTenant(job.payload);
  if (inside !== undefined && job.tenant_id !== undefined && inside !== job.tenant_id)
    throw new MillraceError("TENANT_FORBIDDEN");
  return job.tenant_id ?? inside;
}

function toOptions(job: NewJob, tenant: string, headerKey: string | undefined): EnqueueOptions {
  const options: { -readonly [K in keyof EnqueueOptions]: EnqueueOptions[K] } = { tenant };
  const key = oneKey(headerKey, job.idempotency_key);
  if (key !== undefined) options.key = key;
  if (job.priority !== undefined) options.priority = job.priority;
  if (job.correlation_id !== undefined) options.correlationId = job.correlation_id;
  if (job.reference !== undefined) options.reference = job.reference;
  if (job.delay_ms !== undefined) options.delayMs = job.delay_ms;
  if (job.expires_in_ms !== undefined) options.expiresInMs = job.expires_in_ms;
  if (job.max_attempts !== undefined) options.maxAttempts = job.max_attempts;
  return options;
}

function envelopeTenant(payload: unknown): string | undefined {
  if (typeof payload !== "object" || payload === null || !("tenant_id" in payload))
    return undefined;
  return String(payload.tenant_id);
}

export function oneKey(header: string | undefined, body: string | undefined): string | undefined {
  if (header === undefined || body === undefined || header === body) return body ?? header;
  throw new MillraceError(
    "REQUEST_INVALID",
    "headers.idempotency-key: it contradicts the body's idempotency_key",
  );
}

async function findJob(id: string, identity: Identity, { millrace }: Service): Promise<Job> {
  const job = await millrace.get(id);
  if (job === null || !maySee(identity, job.tenant)) throw new MillraceError("JOB_NOT_FOUND");
  return job;
}

async function list(
  { query, identity }: Call<typeof contract.listJobs | typeof contract.listAdminQueue>,
  { store }: Service,
) {
  const tenant = tenantToRead(identity, query.tenant_id);
  const [before = null] = readCursor("jobs", [uuidShape], query.cursor) ?? [];
  const queueIds =
    query.queue === undefined ? undefined : await queueIdsOf(query.queue, tenant, store);
  const { jobs, next } = await store.service.search.jobs(
    {
      tenant,
      queueIds,
      id: query.id,
      type: query.type,
      states: query.state,
      key: query.idempotency_key,
      correlationId: query.correlation_id,
      reference: query.reference,
      createdFrom: query.created_from === undefined ? undefined : new Date(query.created_from),
      createdTo: query.created_to === undefined ? undefined : new Date(query.created_to),
    },
    before,
    query.limit,
  );
  const body = {
    jobs: jobs.map(summaryView),
    next_cursor: next === null ? null : writeCursor("jobs", next),
  };
  return { status: 200 as const, body };
}

/** Every queue of this name that the tenant may see; of all tenants when none is named. */
async function queueIdsOf(
  name: string,
  tenant: string | undefined,
  { service }: Service["store"],
): Promise<number[]> {
  const queues = await service.queues.list(tenant ?? null);
  return queues.filter((queue) => queue.name === name).map(({ id }) => id);
}

const read = serve(contract.readJob, async ({ params, query, identity }, service) => {
  const job = await findJob(params.id, identity, service);
  const showsPayload = await mayShowPayload(job, query.include_payload, identity, service);
  return { status: 200 as const, body: jobView(job, showsPayload) };
});

/** Producers know what they sent. For everybody else it is an act of its own, and noted. */
async function mayShowPayload(
  job: Job,
  wanted: boolean | undefined,
  identity: Identity,
  { store }: Service,
): Promise<boolean> {
  if (identity.role === "producer") return wanted ?? true;
  if (wanted !== true) return false;
  if (identity.role === "staff") throw new MillraceError("FORBIDDEN");
  const { actor } = identity;
  const entry = { tenant: job.tenant, actor, action: "job_payload_read", target: job.id };
  await store.service.audit.add(entry);
  return true;
}

const cancel = serve(contract.cancelJob, async ({ params, body, identity }, service) => {
  const job = await findJob(params.id, identity, service);
  const result = await service.millrace.cancel(job.id, body?.reason);
  if (result !== "cancelled" && result !== "requested") {
    const { state } = (await service.millrace.get(job.id)) ?? job;
    throw new MillraceError("ILLEGAL_TRANSITION", `The job is ${state}.`, { details: { state } });
  }
  return { status: 200 as const, body: { id: job.id, result } };
});

const retry = serve(contract.retryJob, async ({ params, body, identity }, service) => {
  const job = await findJob(params.id, identity, service);
  const made = await service.millrace.reprocess(job.id, body.notes, identity.actor);
  service.taker.wake([]);
  return {
    status: 201 as const,
    body: {
      message: "The job runs again as a new one.",
      dlq_id: job.id,
      new_job_id: made.id,
      new_idempotency_key: made.idempotencyKey,
    },
  };
});

const noCounts = { enqueued: 0, completed: 0, dead: 0, removed: 0, retried: 0, depth: 0 };

const noneRecently = { enqueued: 0, completed: 0, retried: 0, dead: 0 };

const statistics = serve(contract.readAdminStatistics, async ({ query, identity }, { store }) => {
  const { tenant } = identity;
  const visible = await store.service.queues.list(tenant);
  // What a shared queue counts is everybody's.
  const own = tenant === null ? visible : visible.filter((queue) => queue.tenant === tenant);
  const ids = own.map(({ id }) => id);
  const [counts, recent] = await Promise.all([
    store.counts(ids),
    store.service.queues.series(ids, query.minutes),
  ]);
  const queues = own.map((queue) => ({
    queue_id: queue.id,
    name: queue.name,
    tenant_id: queue.tenant === "" ? null : queue.tenant,
    ...(counts.get(queue.id) ?? noCounts),
    recent: recent.queues.get(queue.id) ?? noneRecently,
  }));
  const totals = { ...noCounts };
  for (const queue of queues)
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += queue[name];
  const series = recent.minutes.map(({ at, counts: done }) => ({ at: at.toISOString(), ...done }));
  return { status: 200 as const, body: { totals, queues, series } };
});

export const jobRoutes: readonly Served[] = [
  enqueue,
  serve(contract.listJobs, list),
  read,
  cancel,
  retry,
  serve(contract.listAdminQueue, list),
  statistics,
];
