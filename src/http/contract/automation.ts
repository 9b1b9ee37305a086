import { z } from "zod";
import { missedSlotPolicies } from "../../domain/due-slots.ts";
import { notificationKinds } from "../../domain/notification.ts";
import { triggerTypes } from "../../domain/trigger.ts";
import * as field from "./fields.ts";
import { defineRoute, request, response } from "./route.ts";

const params = z.object({ id: field.id });
const priority = field.name.nullable();
const cron = field.text(200);

const settings = {
  name: field.name,
  enabled: z.boolean().optional(),
  cron: cron.optional().describe("Of TIME triggers: five or six fields."),
  time_zone: field.name.optional().describe("An IANA name; UTC unless told."),
  missed_slots: z.enum(missedSlotPolicies).optional(),
  max_catch_up: z.int().min(1).max(1_000).optional(),
  queue: field.name.optional().describe("Of QUEUE triggers: where items come from."),
  batch_size: z.int().min(1).max(1_000).optional(),
  polling_interval_ms: z.int().min(1_000).max(86_400_000).optional(),
  on_arrival: z.boolean().optional(),
  job_type: field.name,
  job_queue: field.name.optional(),
  priority: priority.optional(),
  max_attempts: z.int().min(1).max(1_000).nullable().optional(),
  max_runtime_ms: z.int().min(1).max(2_147_483_647).nullable().optional(),
  payload: z.unknown().optional(),
};
const newTrigger = z.strictObject({
  type: z.enum(triggerTypes),
  tenant_id: field.tenantId.optional(),
  ...settings,
});
const changes = z.strictObject(settings).partial();
export type NewTriggerBody = z.output<typeof newTrigger>;
export type TriggerChangesBody = z.output<typeof changes>;

const trigger = response(
  "Trigger",
  z.object({
    id: field.id,
    tenant_id: z.string(),
    name: z.string(),
    type: z.enum(triggerTypes),
    enabled: z.boolean(),
    cron: z.string().nullable(),
    time_zone: z.string().nullable(),
    missed_slots: z.enum(missedSlotPolicies),
    max_catch_up: z.int(),
    queue: z.string().nullable(),
    batch_size: z.int(),
    polling_interval_ms: z.int(),
    on_arrival: z.boolean(),
    job_type: z.string(),
    job_queue: z.string(),
    priority: z.string().nullable(),
    max_attempts: z.int().nullable(),
    max_runtime_ms: z.int().nullable(),
    payload: z.unknown(),
    last_fired_at: field.timeOut.nullable(),
    next_fire_at: field.timeOut.nullable().describe("Null: it will not fire."),
    last_job_id: z.string().nullable(),
    last_processed_item_id: z.string().nullable(),
    failures: z.int().describe("In a row."),
    last_error: z.object({ code: z.string(), message: z.string() }).nullable(),
    retry_at: field.timeOut.nullable(),
    created_at: field.timeOut,
    updated_at: field.timeOut,
  }),
);
const triggerRefusals = [
  "TRIGGER_INVALID",
  "TRIGGER_NAME_TAKEN",
  "SCHEDULE_INVALID",
  "PAYLOAD_INVALID",
  "PAYLOAD_TOO_LARGE",
  "UNKNOWN_PRIORITY",
] as const;

export const listTriggers = defineRoute({
  id: "listTriggers",
  tag: "Triggers",
  method: "GET",
  path: "/api/triggers",
  summary: "All triggers, by id",
  access: ["staff"],
  query: z.strictObject({
    tenant_id: field.tenantId.optional(),
    type: z.enum(triggerTypes).optional(),
    name: field.name.optional(),
    ...field.paging,
  }),
  answers: {
    200: {
      description: "A page of them.",
      body: response(
        "TriggerPage",
        z.object({ triggers: z.array(trigger), next_cursor: field.nextCursor }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN", "CURSOR_INVALID"],
});

export const createTrigger = defineRoute({
  id: "createTrigger",
  tag: "Triggers",
  method: "POST",
  path: "/api/triggers",
  summary: "Make a trigger",
  access: ["manager"],
  body: request("NewTrigger", newTrigger),
  answers: { 201: { description: "The trigger.", body: trigger } },
  refusals: ["TENANT_FORBIDDEN", ...triggerRefusals],
});

export const readTrigger = defineRoute({
  id: "readTrigger",
  tag: "Triggers",
  method: "GET",
  path: "/api/triggers/{id}",
  summary: "One trigger",
  access: ["staff"],
  params,
  answers: { 200: { description: "The trigger.", body: trigger } },
  refusals: ["TRIGGER_NOT_FOUND"],
});

export const updateTrigger = defineRoute({
  id: "updateTrigger",
  tag: "Triggers",
  method: "PUT",
  path: "/api/triggers/{id}",
  summary: "Change a trigger; what is left out stays as it is",
  access: ["manager"],
  params,
  body: request("TriggerChanges", changes),
  answers: { 200: { description: "The trigger as it is now.", body: trigger } },
  refusals: ["TRIGGER_NOT_FOUND", ...triggerRefusals],
});

export const deleteTrigger = defineRoute({
  id: "deleteTrigger",
  tag: "Triggers",
  method: "DELETE",
  path: "/api/triggers/{id}",
  summary: "Delete a trigger; jobs it has made stay",
  access: ["manager"],
  params,
  answers: { 204: { description: "Gone." } },
  refusals: ["TRIGGER_NOT_FOUND"],
});

const webhook = {
  id: field.id,
  tenant_id: z.string().nullable().describe("Null: of all tenants."),
  name: z.string(),
  url: z.string(),
  kinds: z.array(z.string()),
  queues: z.array(z.string()).nullable(),
  is_active: z.boolean(),
  failures: z.int().describe("In a row."),
  failing_since: field.timeOut.nullable(),
  last_error: z.string().nullable(),
  last_failed_at: field.timeOut.nullable(),
  last_delivered_at: field.timeOut.nullable(),
  created_at: field.timeOut,
};
const plainWebhook = response("Webhook", z.object(webhook));
const webhookWithSecret = response(
  "WebhookWithSecret",
  z.object({ ...webhook, secret: z.string().describe("Shown this once.") }),
);
const hookSettings = {
  url: field.text(2_000),
  name: field.name.optional(),
  kinds: z.array(z.enum(notificationKinds)).min(1).optional(),
  queues: z.array(field.name).min(1).max(100).nullable().optional(),
};
const tag = "Webhooks";

export const listWebhooks = defineRoute({
  id: "listWebhooks",
  tag,
  method: "GET",
  path: "/api/webhooks",
  summary: "Who is told of what",
  access: ["manager"],
  query: z.strictObject(field.longPaging),
  answers: {
    200: {
      description: "A page of webhooks, by id, without their secrets.",
      body: response(
        "Webhooks",
        z.object({ webhooks: z.array(plainWebhook), next_cursor: field.nextCursor }),
      ),
    },
  },
  refusals: ["CURSOR_INVALID"],
});

export const createWebhook = defineRoute({
  id: "createWebhook",
  tag,
  method: "POST",
  path: "/api/webhooks",
  summary: "Tell a URL of things; the secret is shown this once",
  access: ["manager"],
  body: request(
    "NewWebhook",
    z.strictObject({ ...hookSettings, tenant_id: field.tenantId.optional() }),
  ),
  answers: { 201: { description: "The webhook.", body: webhookWithSecret } },
  refusals: ["TENANT_FORBIDDEN", "WEBHOOK_URL_REFUSED"],
});

export const updateWebhook = defineRoute({
  id: "updateWebhook",
  tag,
  method: "PUT",
  path: "/api/webhooks/{id}",
  summary: "Change a webhook; what is left out stays as it is",
  access: ["manager"],
  params,
  body: request(
    "WebhookChanges",
    z.strictObject({ ...hookSettings, is_active: z.boolean().optional() }).partial(),
  ),
  answers: { 200: { description: "The webhook as it is now.", body: plainWebhook } },
  refusals: ["WEBHOOK_NOT_FOUND", "WEBHOOK_URL_REFUSED"],
});

export const deleteWebhook = defineRoute({
  id: "deleteWebhook",
  tag,
  method: "DELETE",
  path: "/api/webhooks/{id}",
  summary: "Delete a webhook; deliveries on their way end without being made",
  access: ["manager"],
  params,
  answers: { 204: { description: "Gone." } },
  refusals: ["WEBHOOK_NOT_FOUND"],
});
