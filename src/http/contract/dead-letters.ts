import { z } from "zod";
import { errorClasses } from "../../domain/error-class.ts";
import { deadLetterStatuses } from "../../store/dead-letter.ts";
import * as field from "./fields.ts";
import { fullJob, reprocessed } from "./jobs.ts";
import { defineRoute, request, response } from "./route.ts";

const tag = "Dead letters";

const letter = response(
  "DeadLetter",
  z.object({
    dlq_id: field.id,
    category: z.string().nullable(),
    job_type: z.string(),
    status: z.enum(deadLetterStatuses),
    idempotency_key: z.string(),
    correlation_id: z.string(),
    error_class: z.string(),
    error_fingerprint: z.string(),
    error_message: z.string().describe("At most 500 characters."),
    attempt_count: z.int(),
    original_created_at: field.timeOut,
    created_at: field.timeOut.describe("When it died."),
    queue: z.string(),
    queue_id: z.int(),
    tenant_id: z.string(),
    new_job_id: z.string().nullable(),
    notes: z.string().nullable(),
  }),
);

const filters = {
  status: z.enum(deadLetterStatuses).optional(),
  job_type: field.name.optional(),
  category: field.name.optional(),
  error_fingerprint: field.name.optional(),
  error_class: z.enum(errorClasses).optional(),
  tenant_id: field.tenantId.optional(),
  created_from: field.time.optional(),
  created_to: field.time.optional(),
};
const query = z.strictObject({ ...filters, queue_id: field.queueId.optional(), ...field.paging });
export type DeadLetterQueryInput = Partial<z.output<typeof query>>;

export const listDeadLetters = defineRoute({
  id: "listDeadLetters",
  tag,
  method: "GET",
  path: "/api/jobs/admin/dlq",
  summary: "Find dead letters, the newest first",
  access: ["manager"],
  query,
  answers: {
    200: {
      description: "A page of them, and how many there are in all.",
      body: response(
        "DeadLetterPage",
        z.object({
          dlq_items: z.array(letter),
          total_count: z.number(),
          next_cursor: field.nextCursor,
        }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN", "CURSOR_INVALID"],
});

export const readDeadLetter = defineRoute({
  id: "readDeadLetter",
  tag,
  method: "GET",
  path: "/api/jobs/admin/dlq/{id}",
  summary: "One dead letter with its payload; reading leaves an audit entry",
  access: ["manager"],
  params: z.object({ id: field.id }),
  answers: { 200: { description: "The job as it died.", body: fullJob } },
  refusals: ["DEAD_LETTER_NOT_FOUND"],
});

const notesBody = request("DeadLetterNotes", z.strictObject({ notes: field.notes }));

export const reprocessDeadLetter = defineRoute({
  id: "reprocessDeadLetter",
  tag,
  method: "POST",
  path: "/api/jobs/admin/dlq/{id}/reprocess",
  summary: "Run it again, as a new job that is linked to it",
  access: ["manager"],
  params: z.object({ id: field.id }),
  body: notesBody,
  answers: { 201: { description: "The new job.", body: reprocessed } },
  refusals: ["DEAD_LETTER_NOT_FOUND", "ILLEGAL_TRANSITION", "QUEUE_INACTIVE"],
});

export const discardDeadLetter = defineRoute({
  id: "discardDeadLetter",
  tag,
  method: "POST",
  path: "/api/jobs/admin/dlq/{id}/discard",
  summary: "Close it for good",
  access: ["manager"],
  params: z.object({ id: field.id }),
  body: notesBody,
  answers: {
    200: {
      description: "Closed.",
      body: response("Discarded", z.object({ message: z.string(), dlq_id: field.id })),
    },
  },
  refusals: ["DEAD_LETTER_NOT_FOUND", "ILLEGAL_TRANSITION"],
});

const manyBody = request(
  "DeadLetterRepair",
  z.strictObject({
    notes: field.notes,
    confirm_count: z.int().min(0).max(1_000).describe("How many match, as the list says."),
    filter: z
      .strictObject({ ...filters, queue_id: field.queueId.optional() })
      .omit({ status: true }),
  }),
);

export const reprocessDeadLetters = defineRoute({
  id: "reprocessDeadLetters",
  tag,
  method: "POST",
  path: "/api/jobs/admin/dlq/reprocess",
  summary: "Run all that match and wait for review again, up to 1,000",
  description: "A wrong count answers 409 with the right one, and nothing is done.",
  access: ["manager"],
  body: manyBody,
  answers: {
    200: {
      description: "What became of each.",
      body: response("ReprocessedMany", z.object({ reprocessed: z.array(reprocessed) })),
    },
  },
  refusals: ["TENANT_FORBIDDEN", "COUNT_MISMATCH", "QUEUE_INACTIVE"],
});

export const discardDeadLetters = defineRoute({
  id: "discardDeadLetters",
  tag,
  method: "POST",
  path: "/api/jobs/admin/dlq/discard",
  summary: "Close all that match and wait for review, up to 1,000",
  description: "A wrong count answers 409 with the right one, and nothing is done.",
  access: ["manager"],
  body: manyBody,
  answers: {
    200: {
      description: "Which were closed.",
      body: response("DiscardedMany", z.object({ discarded: z.array(field.id) })),
    },
  },
  refusals: ["TENANT_FORBIDDEN", "COUNT_MISMATCH"],
});

const counts = z.record(z.string(), z.number());

export const readDeadLetterStatistics = defineRoute({
  id: "readDeadLetterStatistics",
  tag,
  method: "GET",
  path: "/api/jobs/admin/dlq/statistics",
  summary: "What dead letters add up to",
  access: ["manager"],
  query: z.strictObject({ tenant_id: field.tenantId.optional() }),
  answers: {
    200: {
      description: "By status all of them; by everything else those that wait for review.",
      body: response(
        "DeadLetterStatistics",
        z.object({
          by_status: counts,
          by_error_class: counts,
          by_category: counts.describe("Without a category: the empty name."),
          by_queue: counts,
          top_fingerprints: z.array(
            z.object({
              error_fingerprint: z.string(),
              count: z.number(),
              error_message: z.string(),
              last_at: field.timeOut,
            }),
          ),
          oldest_pending_seconds: z.number().nullable(),
          last_day: z.number(),
        }),
      ),
    },
  },
  refusals: ["TENANT_FORBIDDEN"],
});
