import { wireToSettings } from "../../client/http/queue-wire.ts";
import { MillraceError } from "../../domain/errors.ts";
import type { QueueRecord } from "../../store/queue-admin.ts";
import * as contract from "../contract/queues.ts";
import { type Identity, maySee, tenantToRead } from "../identity.ts";
import { numberShape, readCursor, writeCursor } from "../input.ts";
import { type Call, type Served, type Service, serve } from "../served.ts";
import { queueView } from "../views.ts";
import { refuseReserved } from "./job-requests.ts";

/** A shared queue is there for everybody; another tenant's is not there at all. */
async function findQueue(id: number, identity: Identity, { store }: Service): Promise<QueueRecord> {
  const queue = await store.service.readsOf(identity.tenant).queues.find(id);
  if (queue === null || !(queue.tenant === "" || maySee(identity, queue.tenant)))
    throw new MillraceError("QUEUE_NOT_FOUND");
  return queue;
}

/** What all tenants share is not one tenant's to change. */
async function ownQueue(id: number, identity: Identity, service: Service): Promise<QueueRecord> {
  const queue = await findQueue(id, identity, service);
  if (queue.tenant === "" && identity.tenant !== null)
    throw new MillraceError(
      "TENANT_FORBIDDEN",
      "The queue is shared by all tenants; this takes a key without a tenant.",
    );
  return queue;
}

const list = serve(contract.listQueues, async ({ query, identity }, { store }) => {
  const tenant = tenantToRead(identity, query.tenant_id) ?? null;
  const [after = "0"] = readCursor("queues", [numberShape], query.cursor) ?? [];
  const { queues } = store.service.readsOf(identity.tenant);
  const all = (await queues.list(tenant)).filter(({ id }) => id > Number(after));
  const shown = all.slice(0, query.limit);
  const last = all.length > shown.length ? shown.at(-1) : undefined;
  return {
    status: 200 as const,
    body: {
      queues: shown.map(queueView),
      next_cursor: last === undefined ? null : writeCursor("queues", String(last.id)),
    },
  };
});

const create = serve(contract.createQueue, async ({ body, identity }, service) => {
  const { queues, audit } = service.store.service;
  const { name, tenant_id, ...settings } = body;
  refuseReserved("body.name", name);
  const tenant = tenantToRead(identity, tenant_id) ?? "";
  if (!(await queues.create(tenant, name))) throw new MillraceError("QUEUE_EXISTS");
  const queue = await change(tenant, name, settings, service);
  await audit.add({
    tenant: tenant === "" ? null : tenant,
    actor: identity.actor,
    action: "queue_create",
    target: String(queue.id),
    details: { name },
  });
  return { status: 201 as const, body: queueView(queue) };
});

async function change(
  tenant: string,
  name: string,
  changes: contract.QueueChanges,
  { store, millrace }: Service,
): Promise<QueueRecord> {
  const { queues } = store.service;
  const { id } = await store.configureQueue(tenant, name, wireToSettings(changes));
  if (changes.external_id !== undefined) await queues.setExternalId(id, changes.external_id);
  millrace.queueCache.invalidate();
  const queue = await queues.find(id);
  if (queue === null) throw new MillraceError("QUEUE_NOT_FOUND");
  return queue;
}

const update = serve(contract.updateQueue, async ({ params, body, identity }, service) => {
  const { tenant, name } = await ownQueue(params.id, identity, service);
  const queue = await change(tenant, name, body, service);
  service.taker.wake([queue.id]);
  await note(queue, "queue_update", identity, service, { details: { changed: Object.keys(body) } });
  return { status: 200 as const, body: queueView(queue) };
});

async function note(
  queue: QueueRecord,
  action: string,
  { actor }: Identity,
  { store }: Service,
  more: { reason?: string; details?: unknown } = {},
): Promise<void> {
  const tenant = queue.tenant === "" ? null : queue.tenant;
  await store.service.audit.add({ tenant, actor, action, target: String(queue.id), ...more });
}

type Pause = Pick<Call<typeof contract.pauseQueue>, "params" | "body" | "identity">;

const setPaused = async (paused: boolean, call: Pause, service: Service) => {
  const { identity, body } = call;
  const { id } = call.params;
  const { store, taker, millrace } = service;
  const { tenant, name } = await ownQueue(id, identity, service);
  await store.pauseQueue(tenant, name, paused);
  millrace.queueCache.invalidate();
  taker.wake([id]);
  const queue = await findQueue(id, identity, service);
  const more = body?.notes === undefined ? {} : { reason: body.notes };
  await note(queue, paused ? "queue_pause" : "queue_resume", identity, service, more);
  return { status: 200 as const, body: queueView(queue) };
};

const remove = serve(contract.deleteQueue, async ({ params, query, identity }, service) => {
  const { queues } = service.store.service;
  const queue = await ownQueue(params.id, identity, service);
  const count = await queues.countItems(queue.id);
  if (count !== query.confirm_count)
    throw new MillraceError("COUNT_MISMATCH", `The queue has ${count} items.`, {
      details: { count },
    });
  await queues.delete(queue.id, identity.actor, count);
  service.millrace.queueCache.invalidate();
  return { status: 200 as const, body: { id: queue.id, deleted_items: count } };
});

const purge = serve(contract.purgeQueue, async ({ params, body, identity }, service) => {
  const queue = await ownQueue(params.id, identity, service);
  const purged = await service.store.service.queues.purge(queue.id);
  await note(queue, "queue_purge", identity, service, {
    reason: body.notes,
    details: { items: purged },
  });
  return { status: 200 as const, body: { id: queue.id, purged } };
});

const stats = serve(contract.readQueueStats, async ({ params, identity }, service) => {
  const queue = await findQueue(params.id, identity, service);
  const found = await service.store.service.readsOf(identity.tenant).stats(queue);
  return {
    status: 200 as const,
    body: {
      queue_id: queue.id,
      is_complete: found.isComplete,
      counts: {
        NEW: found.new,
        IN_PROGRESS: found.inProgress,
        DONE: found.done,
        FAILED: found.failed,
      },
      app_exceptions: found.failed - found.business,
      biz_exceptions: found.business,
      processing_ms: found.times,
      oldest_new_seconds: found.oldestNewSeconds,
      oldest_in_progress_seconds: found.oldestInProgressSeconds,
    },
  };
});

export const queueRoutes: readonly Served[] = [
  list,
  create,
  serve(contract.readQueue, async ({ params, identity }, service) => ({
    status: 200 as const,
    body: queueView(await findQueue(params.id, identity, service)),
  })),
  update,
  remove,
  serve(contract.pauseQueue, (call, service) => setPaused(true, call, service)),
  serve(contract.resumeQueue, (call, service) => setPaused(false, call, service)),
  purge,
  stats,
];
