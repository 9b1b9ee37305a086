import { parseLabel } from "../../client/labels.ts";
import { MillraceError } from "../../domain/errors.ts";
import type { Job } from "../../domain/job.ts";
import { withoutOthers } from "../../domain/waiting-reason.ts";
import type { QueueRecord, QueueSeries } from "../../store/queue-admin.ts";
import type { ServiceReads } from "../../store/service.ts";
import { explainJob } from "../contract/explain.ts";
import * as contract from "../contract/jobs.ts";
import { type Identity, maySee, tenantToRead } from "../identity.ts";
import { readCursor, uuidShape, writeCursor } from "../input.ts";
import { type Call, type Served, type Service, serve } from "../served.ts";
import { jobView, summaryView } from "../views.ts";
import { oneKey, toRequests } from "./job-requests.ts";

/** The header says of one job what its body may say as well. */
function withKey(job: contract.NewJobBody, key: string | undefined): contract.NewJobBody {
  const one = oneKey(key, job.idempotency_key);
  return one === undefined ? job : { ...job, idempotency_key: one };
}

const enqueue = serve(contract.enqueueJob, async ({ body, headers, identity }, service) => {
  const isMany = "jobs" in body;
  const key = headers["idempotency-key"];
  const requests = isMany
    ? await toRequests(body.jobs, key, identity, service)
    : await toRequests([withKey(body, key)], undefined, identity, service);
  const enqueued = await service.millrace.enqueueInto(requests);
  service.taker.wake([...new Set(requests.map(({ queue }) => queue.id))]);
  const isOld = enqueued.every(({ existing }) => existing);
  const status = isOld ? (200 as const) : (201 as const);
  const [first] = enqueued;
  if (isMany || first === undefined) return { status, body: { jobs: enqueued } };
  return { status, body: first };
});

async function findJob(id: string, identity: Identity, { store }: Service): Promise<Job> {
  const [job] = await store.service.readsOf(identity.tenant).find([id]);
  if (job === undefined || !maySee(identity, job.tenant)) throw new MillraceError("JOB_NOT_FOUND");
  return job;
}

async function list(
  { query, identity }: Call<typeof contract.listJobs | typeof contract.listAdminQueue>,
  { store }: Service,
) {
  const tenant = tenantToRead(identity, query.tenant_id);
  const reads = store.service.readsOf(identity.tenant);
  const [before = null] = readCursor("jobs", [uuidShape], query.cursor) ?? [];
  const queueIds =
    query.queue === undefined ? undefined : await queueIdsOf(query.queue, tenant, reads);
  const { jobs, next } = await reads.search.jobs(
    {
      tenant,
      queueIds,
      id: query.id,
      type: query.type,
      states: query.state,
      key: query.idempotency_key,
      correlationId: query.correlation_id,
      reference: query.reference,
      label: query.label === undefined ? undefined : parseLabel(query.label),
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
  reads: ServiceReads,
): Promise<number[]> {
  const queues = await reads.queues.list(tenant ?? null);
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

const explain = serve(explainJob, async ({ params, identity }, service) => {
  const { tenant, id } = await findJob(params.id, identity, service);
  const all = await service.millrace.explain(id);
  const told = identity.tenant === null ? all : withoutOthers(all, await ownOf(all, tenant));
  const { reason: code, text: message, until, holders } = told;
  return {
    status: 200 as const,
    body: {
      job_id: id,
      state: told.state,
      running: told.state === "running",
      reasons: [
        {
          ...{ code, message, until: until?.toISOString() ?? null },
          holders: holders.map(({ job, worker }) => ({ job_id: job, worker })),
        },
      ],
    },
  };

  async function ownOf({ holders }: typeof all, owner: string): Promise<Set<string>> {
    const jobs = await service.store.service
      .readsOf(identity.tenant)
      .find(holders.map(({ job }) => job));
    return new Set(jobs.filter((job) => job.tenant === owner).map((job) => job.id));
  }
});

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

/** Before the first queue was made nothing could happen: that time would only thin the rates out. */
function spanOf(queues: readonly QueueRecord[], { minutes, readAt }: QueueSeries) {
  const made = Math.min(...queues.map(({ createdAt }) => createdAt.getTime()));
  const asked = minutes[0]?.at.getTime() ?? 0;
  const from = Math.min(Math.max(asked, queues.length === 0 ? asked : made), readAt.getTime());
  return [new Date(from).toISOString(), readAt.toISOString()] as const;
}

const statistics = serve(contract.readAdminStatistics, async ({ query, identity }, { store }) => {
  const { tenant } = identity;
  const visible = await store.service.readsOf(tenant).queues.list(tenant);
  // What a shared queue counts is everybody's.
  const own = visible.filter(
    (queue) =>
      (tenant === null || queue.tenant === tenant) && queue.id === (query.queue_id ?? queue.id),
  );
  if (query.queue_id !== undefined && own.length === 0) throw new MillraceError("QUEUE_NOT_FOUND");
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
  const [from, to] = spanOf(own, recent);
  return { status: 200 as const, body: { from, to, totals, queues, series } };
});

export const jobRoutes: readonly Served[] = [
  enqueue,
  serve(contract.listJobs, list),
  read,
  explain,
  cancel,
  retry,
  serve(contract.listAdminQueue, list),
  statistics,
];
