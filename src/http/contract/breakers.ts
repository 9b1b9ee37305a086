import { z } from "zod";
import { breakerStates } from "../../domain/circuit-breaker.ts";
import * as field from "./fields.ts";
import { defineRoute, request, response } from "./route.ts";

const breaker = response(
  "Breaker",
  z.object({
    name: z.string(),
    state: z.enum(breakerStates),
    failures: z.int().describe("In a row, while it is closed."),
    openings: z.int().describe("Since the last reset."),
    retry_after_ms: z
      .number()
      .nullable()
      .describe("While open: until a probe may go out; null: when somebody closes it."),
    probes_out: z.int(),
    cause: z.enum(["failures", "probe", "manual"]).nullable(),
    reason: z.string().nullable(),
    changed_at: field.timeOut,
    last_failure_at: field.timeOut.nullable(),
    last_error: z.string().nullable(),
    failure_threshold: z.int(),
    open_cooldown_seconds: z.number(),
    half_open_probe_count: z.int(),
    probe_timeout_seconds: z.number(),
    return_spread_seconds: z.number().nullable(),
  }),
);

const params = z.object({ name: field.name });
const body = request("BreakerChange", z.strictObject({ reason: field.notes }));
const description = "Tenants share the breakers, so this takes a key without one.";
const tag = "Breakers";

export const listBreakers = defineRoute({
  id: "listBreakers",
  tag,
  method: "GET",
  path: "/api/breakers",
  summary: "The circuit breakers of all platforms",
  description,
  access: ["staff"],
  answers: {
    200: {
      description: "All of them, by name.",
      body: response("Breakers", z.object({ breakers: z.array(breaker) })),
    },
  },
  refusals: ["TENANT_FORBIDDEN"],
});

export const readBreaker = defineRoute({
  id: "readBreaker",
  tag,
  method: "GET",
  path: "/api/breakers/{name}",
  summary: "One circuit breaker",
  description,
  access: ["staff"],
  params,
  answers: { 200: { description: "The breaker.", body: breaker } },
  refusals: ["TENANT_FORBIDDEN", "BREAKER_NOT_FOUND"],
});

export const openBreaker = defineRoute({
  id: "openBreaker",
  tag,
  method: "POST",
  path: "/api/breakers/{name}/open",
  summary: "Refuse every call until somebody closes it",
  description,
  access: ["manager"],
  params,
  body,
  answers: { 200: { description: "The breaker as it is now.", body: breaker } },
  refusals: ["TENANT_FORBIDDEN", "BREAKER_NOT_FOUND"],
});

export const closeBreaker = defineRoute({
  id: "closeBreaker",
  tag,
  method: "POST",
  path: "/api/breakers/{name}/close",
  summary: "Let calls through again",
  description,
  access: ["manager"],
  params,
  body,
  answers: { 200: { description: "The breaker as it is now.", body: breaker } },
  refusals: ["TENANT_FORBIDDEN", "BREAKER_NOT_FOUND"],
});

export const resetBreaker = defineRoute({
  id: "resetBreaker",
  tag,
  method: "POST",
  path: "/api/breakers/{name}/reset",
  summary: "Close it, and forget how often it opened and its last error",
  description,
  access: ["manager"],
  params,
  body,
  answers: { 200: { description: "The breaker as it is now.", body: breaker } },
  refusals: ["TENANT_FORBIDDEN", "BREAKER_NOT_FOUND"],
});
