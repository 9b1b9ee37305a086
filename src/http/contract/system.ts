import { z } from "zod";
import { roles } from "../../store/api-key.ts";
import * as field from "./fields.ts";
import { defineRoute, request, response } from "./route.ts";

export const readHealth = defineRoute({
  id: "readHealth",
  tag: "Operations",
  method: "GET",
  path: "/healthz",
  summary: "Is the process alive?",
  access: "public",
  answers: {
    200: { description: "It is.", body: response("Health", z.object({ status: z.literal("ok") })) },
  },
  refusals: [],
});

const readiness = response(
  "Readiness",
  z.object({
    status: z.enum(["ready", "not_ready"]),
    parts: z.object({
      postgres: z.enum(["ok", "unreachable"]),
      leader: z
        .enum(["in_office", "vacant", "unknown"])
        .describe("While it is vacant nothing that is delayed falls due unless a worker runs."),
    }),
  }),
);

export const readReadiness = defineRoute({
  id: "readReadiness",
  tag: "Operations",
  method: "GET",
  path: "/readyz",
  summary: "Can it serve, and if not, what is in the way?",
  access: "public",
  answers: {
    200: { description: "It can.", body: readiness },
    503: { description: "It cannot; the parts say why.", body: readiness },
  },
  refusals: [],
});

export const readOpenApi = defineRoute({
  id: "readOpenApi",
  tag: "Operations",
  method: "GET",
  path: "/api/openapi.json",
  summary: "This document",
  access: "public",
  answers: {
    200: {
      description: "OpenAPI 3.1.",
      body: response("OpenApiDocument", z.record(z.string(), z.unknown())),
    },
  },
  refusals: [],
});

const key = {
  id: field.id,
  tenant_id: z.string().nullable().describe("Null: of all tenants."),
  name: z.string(),
  role: z.enum(roles),
  rate_limit: z.int().nullable().describe("Requests per second."),
  expires_at: field.timeOut.nullable(),
  revoked_at: field.timeOut.nullable(),
  last_used_at: field.timeOut.nullable().describe("To the minute."),
  created_at: field.timeOut,
};
const apiKey = response("ApiKey", z.object(key));
const apiKeyWithSecret = response(
  "ApiKeyWithSecret",
  z.object({ ...key, key: z.string().describe("Shown this once.") }),
);
const params = z.object({ id: field.id });

export const listKeys = defineRoute({
  id: "listKeys",
  tag: "Keys",
  method: "GET",
  path: "/api/keys",
  summary: "All keys, of the tenant if the key belongs to one",
  access: ["admin"],
  query: z.strictObject(field.longPaging),
  answers: {
    200: {
      description: "A page of keys, by id, without their secrets.",
      body: response("ApiKeys", z.object({ keys: z.array(apiKey), next_cursor: field.nextCursor })),
    },
  },
  refusals: ["CURSOR_INVALID"],
});

export const createKey = defineRoute({
  id: "createKey",
  tag: "Keys",
  method: "POST",
  path: "/api/keys",
  summary: "Make a key; it is shown this once",
  access: ["admin"],
  body: request(
    "NewApiKey",
    z.strictObject({
      name: field.name,
      role: z.enum(roles),
      tenant_id: field.tenantId.optional(),
      expires_at: field.time.optional(),
      rate_limit: z.int().min(1).max(1_000_000).optional(),
    }),
  ),
  answers: { 201: { description: "The key.", body: apiKeyWithSecret } },
  refusals: ["TENANT_FORBIDDEN"],
});

export const readKey = defineRoute({
  id: "readKey",
  tag: "Keys",
  method: "GET",
  path: "/api/keys/{id}",
  summary: "One key, without its secret",
  access: ["admin"],
  params,
  answers: { 200: { description: "The key.", body: apiKey } },
  refusals: ["API_KEY_NOT_FOUND"],
});

export const rotateKey = defineRoute({
  id: "rotateKey",
  tag: "Keys",
  method: "POST",
  path: "/api/keys/{id}/rotate",
  summary: "Give a key a new secret; the old one works on for a while",
  access: ["admin"],
  params,
  body: request(
    "KeyRotation",
    z.strictObject({
      overlap_seconds: z
        .int()
        .min(0)
        .max(30 * 86_400)
        .default(86_400),
    }),
  ).optional(),
  answers: { 200: { description: "The key with its new secret.", body: apiKeyWithSecret } },
  refusals: ["API_KEY_NOT_FOUND"],
});

export const revokeKey = defineRoute({
  id: "revokeKey",
  tag: "Keys",
  method: "DELETE",
  path: "/api/keys/{id}",
  summary: "Revoke a key; within five seconds nobody accepts it",
  access: ["admin"],
  params,
  answers: { 200: { description: "The key as it is now.", body: apiKey } },
  refusals: ["API_KEY_NOT_FOUND"],
});

const entry = response(
  "AuditEntry",
  z.object({
    no: z.int(),
    at: field.timeOut,
    tenant_id: z.string().nullable(),
    actor: z.string(),
    action: z.string(),
    target: z.string(),
    reason: z.string().nullable(),
    details: z.unknown(),
    hash: z.string().describe("Covers this entry and the hash of the one before."),
  }),
);

export const listAudit = defineRoute({
  id: "listAudit",
  tag: "Audit",
  method: "GET",
  path: "/api/audit",
  summary: "What operators did, the newest first",
  access: ["manager"],
  query: z.strictObject({
    tenant_id: field.tenantId.optional(),
    action: field.name.optional(),
    target: field.name.optional(),
    ...field.paging,
  }),
  answers: {
    200: {
      description: "A page of entries.",
      body: response(
        "AuditPage",
        z.object({ entries: z.array(entry), next_cursor: field.nextCursor }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN", "CURSOR_INVALID"],
});

export const verifyAudit = defineRoute({
  id: "verifyAudit",
  tag: "Audit",
  method: "GET",
  path: "/api/audit/verify",
  summary: "Is the audit trail whole?",
  description: "Takes a key without a tenant: the chain runs through all of them.",
  access: ["admin"],
  answers: {
    200: {
      description: "What was found.",
      body: response(
        "AuditVerification",
        z.object({
          ok: z.boolean(),
          entries: z.number(),
          head: z.object({ no: z.number(), hash: z.string() }),
          broken_at: z.number().nullable(),
          problem: z.string().nullable(),
        }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN"],
});
