import { z } from "zod";
import * as field from "./fields.ts";
import { settings, settingsOut } from "./queue-settings.ts";
import { defineRoute, request, response } from "./route.ts";

const changes = z.strictObject(settings);
export type QueueChanges = z.output<typeof changes>;

const newQueue = request(
  "NewQueue",
  z.strictObject({ name: field.name, tenant_id: field.tenantId.optional(), ...settings }),
);
const queueChanges = request("QueueChanges", changes);

export const queue = response(
  "Queue",
  z.object({
    id: z.int(),
    tenant_id: z.string().nullable().describe("Null: shared by all tenants."),
    name: z.string(),
    paused: z.boolean(),
    ...settingsOut,
    created_at: field.timeOut,
    updated_at: field.timeOut,
  }),
);

const params = z.object({ id: field.queueId });
const tag = "Queues";

export const listQueues = defineRoute({
  id: "listQueues",
  tag,
  method: "GET",
  path: "/api/queues",
  summary: "The tenant's own queues and the shared ones",
  access: ["producer", "robot", "staff"],
  query: z.strictObject({ tenant_id: field.tenantId.optional(), ...field.paging }),
  answers: {
    200: {
      description: "A page of them, by id.",
      body: response(
        "QueuePage",
        z.object({ queues: z.array(queue), next_cursor: field.nextCursor }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN", "CURSOR_INVALID"],
});

export const createQueue = defineRoute({
  id: "createQueue",
  tag,
  method: "POST",
  path: "/api/queues",
  summary: "Make a queue",
  description:
    "Of the key's tenant. A key without a tenant makes a shared one unless it names a tenant. Items are tried once unless max_retries says more.",
  access: ["manager"],
  body: newQueue,
  answers: { 201: { description: "The queue.", body: queue } },
  refusals: ["TENANT_FORBIDDEN", "QUEUE_EXISTS"],
});

export const readQueue = defineRoute({
  id: "readQueue",
  tag,
  method: "GET",
  path: "/api/queues/{id}",
  summary: "One queue",
  access: ["producer", "robot", "staff"],
  params,
  answers: { 200: { description: "The queue.", body: queue } },
  refusals: ["QUEUE_NOT_FOUND"],
});

export const updateQueue = defineRoute({
  id: "updateQueue",
  tag,
  method: "PUT",
  path: "/api/queues/{id}",
  summary: "Change a queue; what is left out stays as it is",
  access: ["manager"],
  params,
  body: queueChanges,
  answers: { 200: { description: "The queue as it is now.", body: queue } },
  refusals: ["QUEUE_NOT_FOUND", "TENANT_FORBIDDEN", "REFERENCES_NOT_UNIQUE"],
});

export const deleteQueue = defineRoute({
  id: "deleteQueue",
  tag,
  method: "DELETE",
  path: "/api/queues/{id}",
  summary: "Delete a queue with all its items",
  description:
    "confirm_count is how many items it has; a wrong count answers 409 with the right one, and nothing is deleted.",
  access: ["manager"],
  params,
  query: z.strictObject({ confirm_count: z.coerce.number().int().min(0) }),
  answers: {
    200: {
      description: "Gone.",
      body: response("QueueDeleted", z.object({ id: z.int(), deleted_items: z.number() })),
    },
  },
  refusals: ["QUEUE_NOT_FOUND", "TENANT_FORBIDDEN", "COUNT_MISMATCH"],
});

const pause = request("QueuePause", z.strictObject({ notes: field.notes.optional() })).optional();

export const pauseQueue = defineRoute({
  id: "pauseQueue",
  tag,
  method: "POST",
  path: "/api/queues/{id}/pause",
  summary: "Serve nothing more from it; it goes on accepting",
  access: ["manager"],
  params,
  body: pause,
  answers: { 200: { description: "The queue.", body: queue } },
  refusals: ["QUEUE_NOT_FOUND", "TENANT_FORBIDDEN"],
});

export const resumeQueue = defineRoute({
  id: "resumeQueue",
  tag,
  method: "POST",
  path: "/api/queues/{id}/resume",
  summary: "Serve it again",
  access: ["manager"],
  params,
  body: pause,
  answers: { 200: { description: "The queue.", body: queue } },
  refusals: ["QUEUE_NOT_FOUND", "TENANT_FORBIDDEN"],
});

export const purgeQueue = defineRoute({
  id: "purgeQueue",
  tag,
  method: "POST",
  path: "/api/queues/{id}/purge",
  summary: "Delete what waits in it; what runs goes on",
  access: ["manager"],
  params,
  body: request("Purge", z.strictObject({ notes: field.notes })),
  answers: {
    200: {
      description: "How many went.",
      body: response("Purged", z.object({ id: z.int(), purged: z.number() })),
    },
  },
  refusals: ["QUEUE_NOT_FOUND", "TENANT_FORBIDDEN"],
});

export const readQueueStats = defineRoute({
  id: "readQueueStats",
  tag,
  method: "GET",
  path: "/api/queues/{id}/stats",
  summary: "How many items it has in which status, how long they take, how old they are",
  description:
    "DONE counts all that were completed and not deleted, also those past their retention. Times are those of the last thousand that ended. Of a shared queue a key of a tenant is told its own share, counted over the records that are kept.",
  access: ["staff"],
  params,
  answers: {
    200: {
      description: "The figures.",
      body: response(
        "QueueStats",
        z.object({
          queue_id: z.int(),
          is_complete: z
            .boolean()
            .describe(
              "False: a tenant's share that is too large to be counted; the figures are of 3,000 waiting, delayed, failed and finished jobs each, the newest of those that ended.",
            ),
          counts: z.object({
            NEW: z.number(),
            IN_PROGRESS: z.number(),
            DONE: z.number(),
            FAILED: z.number(),
          }),
          app_exceptions: z.number(),
          biz_exceptions: z.number(),
          processing_ms: z
            .object({ average: z.number(), p50: z.number(), p95: z.number(), p99: z.number() })
            .nullable(),
          oldest_new_seconds: z.number().nullable(),
          oldest_in_progress_seconds: z.number().nullable(),
        }),
      ),
    },
  },
  refusals: ["QUEUE_NOT_FOUND"],
});
