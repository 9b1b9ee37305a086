import { z } from "zod";
import * as field from "./fields.ts";
import { defineRoute, request, response } from "./route.ts";

const rateOut = z.object({ limit: z.int(), window_ms: z.int() });

const tenant = response(
  "Tenant",
  z.object({
    tenant_id: z.string(),
    weight: z.int().describe("Its share beside others of a queue: so many jobs per turn."),
    rate_limit: rateOut.nullable().describe("How much it may enqueue, in all queues together."),
    capacity: z.int().nullable().describe("How many of its jobs may wait and run, in all queues."),
    warn_depth: z.int().nullable().describe("From so many on a notification is raised."),
    paused: z.boolean(),
  }),
);

const depth = z.int().min(0).max(2_147_483_647).nullable().optional();

/** A name of 200 characters is in it. */
const cursor = z.string().max(2_000).optional().describe("`next_cursor` of the page before.");
const params = z.object({ id: field.name.describe("The tenant's name.") });
const ownOnly = "A tenant does not change itself: this takes a key without a tenant.";
const tag = "Tenants";

export const listTenants = defineRoute({
  id: "listTenants",
  tag,
  method: "GET",
  path: "/api/tenants",
  summary: "All tenants that have jobs, queues, keys or settings",
  description: "A key of a tenant is shown its own.",
  access: ["admin"],
  query: z.strictObject({ ...field.paging, cursor }),
  answers: {
    200: {
      description: "A page of them, by name.",
      body: response(
        "TenantPage",
        z.object({ tenants: z.array(tenant), next_cursor: field.nextCursor }),
      ),
    },
  },
  refusals: ["CURSOR_INVALID"],
});

export const readTenant = defineRoute({
  id: "readTenant",
  tag,
  method: "GET",
  path: "/api/tenants/{id}",
  summary: "One tenant",
  access: ["admin"],
  params,
  answers: { 200: { description: "The tenant.", body: tenant } },
  refusals: ["TENANT_NOT_FOUND"],
});

export const updateTenant = defineRoute({
  id: "updateTenant",
  tag,
  method: "PUT",
  path: "/api/tenants/{id}",
  summary: "Change a tenant's settings; what is left out stays as it is",
  description: `A tenant need not be known before. ${ownOnly}`,
  access: ["admin"],
  params,
  body: request(
    "TenantChanges",
    z.strictObject({
      weight: z.int().min(1).max(100).optional(),
      rate_limit: z
        .strictObject({
          limit: z.int().min(1).max(2_147_483_647),
          window_ms: z.int().min(10).max(86_400_000),
        })
        .nullable()
        .optional(),
      capacity: depth,
      warn_depth: depth,
    }),
  ),
  answers: { 200: { description: "The tenant as it is now.", body: tenant } },
  refusals: ["TENANT_NOT_FOUND", "TENANT_FORBIDDEN"],
});

export const pauseTenant = defineRoute({
  id: "pauseTenant",
  tag,
  method: "POST",
  path: "/api/tenants/{id}/pause",
  summary: "Start none of its jobs; they are accepted and kept",
  description: ownOnly,
  access: ["admin"],
  params,
  answers: { 200: { description: "The tenant.", body: tenant } },
  refusals: ["TENANT_NOT_FOUND", "TENANT_FORBIDDEN"],
});

export const resumeTenant = defineRoute({
  id: "resumeTenant",
  tag,
  method: "POST",
  path: "/api/tenants/{id}/resume",
  summary: "Start its jobs again",
  description: ownOnly,
  access: ["admin"],
  params,
  answers: { 200: { description: "The tenant.", body: tenant } },
  refusals: ["TENANT_NOT_FOUND", "TENANT_FORBIDDEN"],
});

const erasure = response(
  "TenantErasure",
  z.object({
    tenant_id: z.string(),
    done: z.boolean(),
    running: z.int().describe("Jobs that ran when this pass began; they were asked to stop."),
    erased: z
      .object({ waiting: z.int(), dead_letters: z.int(), history: z.int() })
      .describe("By this call."),
    next_cursor: z.string().nullable().describe("For the next call; null: begin again, or done."),
  }),
);

export const eraseTenant = defineRoute({
  id: "eraseTenant",
  tag,
  method: "DELETE",
  path: "/api/tenants/{id}",
  summary: "Erase what a tenant's jobs hold; hashes and the audit trail stay",
  description: `Pauses the tenant, deletes its triggers and what waits, asks what runs to stop, and takes payloads, results, error texts, references and keys out of everything that has ended. A call does a bounded part: repeat it with \`next_cursor\` while it answers 202. What is enqueued meanwhile is not erased: revoke the tenant's keys first. ${ownOnly}`,
  access: ["admin"],
  params,
  query: z.strictObject({
    confirm: field.name.describe("The tenant's name once more."),
    notes: field.notes,
    cursor: field.paging.cursor.describe("`next_cursor` of the call before."),
  }),
  answers: {
    200: { description: "Nothing is left.", body: erasure },
    202: { description: "There is more to do: call again.", body: erasure },
  },
  refusals: ["TENANT_NOT_FOUND", "TENANT_FORBIDDEN", "CONFIRMATION_MISMATCH", "CURSOR_INVALID"],
});
