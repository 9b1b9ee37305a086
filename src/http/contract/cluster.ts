import { z } from "zod";
import * as field from "./fields.ts";
import { defineRoute, response } from "./route.ts";

export const listWorkers = defineRoute({
  id: "listWorkers",
  tag: "Operations",
  method: "GET",
  path: "/api/workers",
  summary: "Who is at work and on what; those who died are shown for a day",
  description: "Workers serve all tenants, so this takes a key without one.",
  access: ["staff"],
  answers: {
    200: {
      description: "The workers.",
      body: response(
        "Workers",
        z.object({
          workers: z.array(
            z.object({
              lease_id: z.string(),
              name: z.string(),
              state: z.enum(["live", "dead"]),
              started_at: field.timeOut,
              renewed_at: field.timeOut,
              info: z.unknown(),
              running: z.record(z.string(), z.number()).describe("How many jobs of each type."),
            }),
          ),
        }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN"],
});

export const readCluster = defineRoute({
  id: "readCluster",
  tag: "Operations",
  method: "GET",
  path: "/api/cluster",
  summary: "Who leads, how jobs are dispatched, and how the servers are",
  access: ["staff"],
  answers: {
    200: {
      description: "As this process sees it.",
      body: response(
        "Cluster",
        z.object({
          leader: z.object({
            in_office: z.boolean(),
            term: z.number(),
            holder: z.string().nullable(),
            elected_at: field.timeOut.nullable(),
          }),
          dispatch: z.enum(["brokered", "direct"]),
          redis: z.enum(["ok", "unreachable", "unused"]),
          postgres: z.object({
            status: z.literal("ok"),
            version: z.string(),
            row_security: z
              .enum(["on", "off"])
              .describe("Off: the role of tenants could not be made; the service checks alone."),
          }),
        }),
      ),
    },
  },
  refusals: [],
});
