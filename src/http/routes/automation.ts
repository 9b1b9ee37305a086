import type { TriggerChanges, TriggerOptions } from "../../client/trigger-settings.ts";
import { MillraceError } from "../../domain/errors.ts";
import type { Trigger } from "../../domain/trigger.ts";
import type { Webhook } from "../../store/webhook.ts";
import * as contract from "../contract/automation.ts";
import { type Identity, maySee, tenantToActOn, tenantToRead } from "../identity.ts";
import { pageById } from "../input.ts";
import { type Served, type Service, serve } from "../served.ts";
import { triggerView, webhookView } from "../views.ts";

const mostTriggers = 10_000;

async function findTrigger(id: string, identity: Identity, { store }: Service) {
  const trigger = await store.service.readsOf(identity.tenant).triggers.find(id);
  if (trigger === null || !maySee(identity, trigger.tenant))
    throw new MillraceError("TRIGGER_NOT_FOUND");
  return trigger;
}

const listTriggers = serve(contract.listTriggers, async ({ query, identity }, { store }) => {
  const { type, name } = query;
  const tenant = tenantToRead(identity, query.tenant_id);
  const filter = {
    ...(tenant === undefined ? {} : { tenant }),
    ...(type === undefined ? {} : { type }),
    ...(name === undefined ? {} : { name }),
  };
  const { triggers: readable } = store.service.readsOf(identity.tenant);
  const all = await readable.list(filter, mostTriggers);
  const { shown, next_cursor } = pageById("triggers", all, query);
  const triggers = shown.map((trigger) => triggerView(trigger, identity.role !== "staff"));
  return { status: 200 as const, body: { triggers, next_cursor } };
});

const fields = {
  name: "name",
  enabled: "enabled",
  cron: "cron",
  time_zone: "timeZone",
  missed_slots: "missedSlots",
  max_catch_up: "maxCatchUp",
  queue: "queue",
  batch_size: "batchSize",
  polling_interval_ms: "pollingIntervalMs",
  on_arrival: "onArrival",
  job_type: "jobType",
  job_queue: "jobQueue",
  priority: "priority",
  max_attempts: "maxAttempts",
  max_runtime_ms: "maxRuntimeMs",
  payload: "payload",
} as const;

function toChanges(body: contract.TriggerChangesBody): TriggerChanges {
  const named = Object.entries(fields).filter(
    ([name]) => body[name as keyof typeof fields] !== undefined,
  );
  return Object.fromEntries(
    named.map(([name, option]) => [option, body[name as keyof typeof fields]]),
  );
}

/** A tenant's trigger names its own queues or shared ones; what is not there yet becomes its own. */
async function ownQueues(
  { queue, job_queue }: contract.TriggerChangesBody,
  { tenant }: Identity,
  { millrace }: Service,
): Promise<void> {
  if (tenant === null) return;
  for (const name of [queue, job_queue])
    if (name !== undefined) await millrace.queueCache.resolveOwn(tenant, name);
}

const createTrigger = serve(contract.createTrigger, async ({ body, identity }, service) => {
  const { type, tenant_id, ...settings } = body;
  const tenant = tenantToActOn(identity, tenant_id);
  const options = { ...toChanges(settings), type, tenant } as TriggerOptions;
  await ownQueues(body, identity, service);
  const trigger = await service.millrace.triggers.create(options);
  await note(trigger, "trigger_create", identity, service);
  return { status: 201 as const, body: triggerView(trigger, true) };
});

const updateTrigger = serve(contract.updateTrigger, async ({ params, body, identity }, service) => {
  const { id } = await findTrigger(params.id, identity, service);
  await ownQueues(body, identity, service);
  const trigger = await service.millrace.triggers.update(id, toChanges(body));
  await note(trigger, "trigger_update", identity, service);
  return { status: 200 as const, body: triggerView(trigger, true) };
});

async function note(
  { tenant, id, name }: Trigger,
  action: string,
  { actor }: Identity,
  { store }: Service,
): Promise<void> {
  await store.service.audit.add({ tenant, actor, action, target: id, details: { name } });
}

const deleteTrigger = serve(contract.deleteTrigger, async ({ params, identity }, service) => {
  const trigger = await findTrigger(params.id, identity, service);
  await service.millrace.triggers.delete(trigger.id);
  await note(trigger, "trigger_delete", identity, service);
  return { status: 204 as const };
});

/** A webhook of all tenants hears of all of them: it is no business of one. */
const isOwn = ({ tenant }: Identity, webhook: Webhook) =>
  tenant === null || webhook.tenant === tenant;

async function findWebhook(id: string, identity: Identity, { store }: Service): Promise<Webhook> {
  const all = await store.service.readsOf(identity.tenant).webhooks.list();
  const webhook = all.find((one) => one.id === id.toLowerCase());
  if (webhook === undefined || !isOwn(identity, webhook))
    throw new MillraceError("WEBHOOK_NOT_FOUND");
  return webhook;
}

const createWebhook = serve(contract.createWebhook, async ({ body, identity }, { millrace }) => {
  const tenant = tenantToRead(identity, body.tenant_id);
  const { url, name, kinds, queues } = body;
  const { secret, ...webhook } = await millrace.webhooks.create(
    {
      url,
      ...(name === undefined ? {} : { name }),
      ...(kinds === undefined ? {} : { kinds }),
      ...(queues === undefined ? {} : { queues }),
      ...(tenant === undefined ? {} : { tenant }),
    },
    identity.actor,
  );
  return { status: 201 as const, body: { ...webhookView(webhook), secret } };
});

const updateWebhook = serve(contract.updateWebhook, async ({ params, body, identity }, service) => {
  const { id } = await findWebhook(params.id, identity, service);
  const { url, name, kinds, queues, is_active } = body;
  const changed = await service.millrace.webhooks.update(
    id,
    {
      ...(url === undefined ? {} : { url }),
      ...(name === undefined ? {} : { name }),
      ...(kinds === undefined ? {} : { kinds }),
      ...(queues === undefined ? {} : { queues }),
      ...(is_active === undefined ? {} : { isActive: is_active }),
    },
    identity.actor,
  );
  return { status: 200 as const, body: webhookView(changed) };
});

export const automationRoutes: readonly Served[] = [
  listTriggers,
  createTrigger,
  serve(contract.readTrigger, async ({ params, identity }, service) => {
    const trigger = await findTrigger(params.id, identity, service);
    return { status: 200 as const, body: triggerView(trigger, identity.role !== "staff") };
  }),
  updateTrigger,
  deleteTrigger,
  serve(contract.listWebhooks, async ({ query, identity }, { store }) => {
    const all = await store.service.readsOf(identity.tenant).webhooks.list();
    const own = all.filter((webhook) => isOwn(identity, webhook));
    const { shown, next_cursor } = pageById("webhooks", own, query);
    return { status: 200 as const, body: { webhooks: shown.map(webhookView), next_cursor } };
  }),
  createWebhook,
  updateWebhook,
  serve(contract.deleteWebhook, async ({ params, identity }, service) => {
    const { id } = await findWebhook(params.id, identity, service);
    await service.millrace.webhooks.delete(id, identity.actor);
    return { status: 204 as const };
  }),
];
