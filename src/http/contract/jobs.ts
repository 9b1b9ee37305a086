import { z } from "zod";
import { jobStates } from "../../domain/job-state.ts";
import { mostSeriesMinutes } from "../../store/queue-admin.ts";
import * as field from "./fields.ts";
import { defineRoute, request, response } from "./route.ts";
import { run } from "./run.ts";

const longest = 100 * 365 * 86_400_000;
const milliseconds = (least: number) => z.int().min(least).max(longest);

const newJob = z.strictObject({
  type: field.name,
  payload: z.unknown().optional().describe("Any JSON; the payload rules apply."),
  queue: field.name.default("default"),
  tenant_id: field.tenantId.optional(),
  idempotency_key: field.name.optional(),
  correlation_id: field.name.optional(),
  reference: field.name.optional(),
  priority: field.name.optional().describe("A label: high, normal, low, or one of your own."),
  category: field.name.optional(),
  labels: field.labelPaths.optional(),
  ordering_key: field.orderingKey.optional(),
  limit_key: field.limitKey.optional(),
  delay_ms: milliseconds(0).optional(),
  expires_in_ms: milliseconds(1).optional(),
  max_attempts: z.int().min(1).max(1000).optional(),
});
export type NewJobBody = z.output<typeof newJob>;

const oneJob = request("NewJob", newJob);
const manyJobs = request("NewJobs", z.strictObject({ jobs: z.array(newJob).min(1).max(1_000) }));

const enqueued = z.object({
  id: field.id,
  existing: z.boolean().describe("True: this very request was made before, and this is its job."),
});
const oneEnqueued = response("Enqueued", enqueued);
const manyEnqueued = response("EnqueuedMany", z.object({ jobs: z.array(enqueued) }));

const summary = {
  id: field.id,
  type: z.string(),
  queue: z.string(),
  tenant_id: z.string(),
  state: z.enum(jobStates),
  weight: z.int().describe("Lower runs first."),
  attempt: z.int(),
  max_attempts: z.int(),
  correlation_id: z.string(),
  idempotency_key: z.string(),
  reference: z.string().nullable(),
  created_at: field.timeOut,
  due_at: field.timeOut.nullable(),
  started_at: field.timeOut.nullable(),
  finished_at: field.timeOut.nullable(),
  error_class: z.string().nullable(),
  error_message: z.string().nullable(),
};
const jobSummary = response("JobSummary", z.object(summary));

export const fullJob = response(
  "Job",
  z.object({
    ...summary,
    category: z.string().nullable(),
    payload: z.unknown().describe("Null when masked."),
    payload_masked: z.boolean(),
    result: z.unknown(),
    crash_count: z.int(),
    cancel_requested: z.boolean(),
    error_fingerprint: z.string().nullable(),
    error_stack: z.string().nullable().describe("Of the last error; at most 4 KB."),
    expires_at: field.timeOut.nullable(),
    reprocess_of: z.string().nullable(),
    reprocessed_as: z.string().nullable(),
    trigger_id: z.string().nullable().describe("The trigger that made it."),
    closed_reason: z.string().nullable(),
    timeline: z.array(run).describe("What became of each run, the oldest first."),
  }),
);

const jobPage = response(
  "JobPage",
  z.object({ jobs: z.array(jobSummary), next_cursor: field.nextCursor }),
);

const filters = {
  id: field.id.optional(),
  type: field.name.optional(),
  queue: field.name.optional(),
  tenant_id: field.tenantId.optional(),
  state: field.words(jobStates).optional().describe("One or several states, with commas."),
  correlation_id: field.name.optional(),
  reference: field.name.optional(),
  idempotency_key: field.name.optional(),
  label: field
    .text(1_000)
    .optional()
    .describe("`name:value` of a label, of the tenant that is named or of `default`."),
  created_from: field.time.optional(),
  created_to: field.time.optional(),
  ...field.paging,
};

export const enqueueJob = defineRoute({
  id: "enqueueJob",
  tag: "Jobs",
  method: "POST",
  path: "/api/jobs",
  summary: "Enqueue one job, or up to 1,000 that are stored together or not at all",
  description:
    "With an idempotency key (in the body, or as the header Idempotency-Key) the same request again answers 200 with the same job, and a different one 409. The same is everything that is asked for, but for the correlation id; the header of many jobs covers all of them together. A queue that is not there yet is made: the key's tenant's own, or a shared one if it has none.",
  access: ["producer", "manager"],
  headers: z.object({ "idempotency-key": field.name.optional() }),
  body: z.union([manyJobs, oneJob]),
  answers: {
    201: { description: "Stored.", body: z.union([oneEnqueued, manyEnqueued]) },
    200: {
      description: "All of it was stored before.",
      body: z.union([oneEnqueued, manyEnqueued]),
    },
  },
  refusals: [
    "PAYLOAD_INVALID",
    "PAYLOAD_TOO_LARGE",
    "UNKNOWN_PRIORITY",
    "TENANT_FORBIDDEN",
    "IDEMPOTENCY_CONFLICT",
    "REFERENCE_TAKEN",
    "QUEUE_INACTIVE",
    "QUEUE_FULL",
    "TENANT_FULL",
    "KEY_BUSY",
  ],
});

export const listJobs = defineRoute({
  id: "listJobs",
  tag: "Jobs",
  method: "GET",
  path: "/api/jobs",
  summary: "Find jobs, the newest first",
  access: ["producer", "staff"],
  query: z.strictObject(filters),
  answers: { 200: { description: "A page of them.", body: jobPage } },
  refusals: ["TENANT_FORBIDDEN", "CURSOR_INVALID"],
});

export const readJob = defineRoute({
  id: "readJob",
  tag: "Jobs",
  method: "GET",
  path: "/api/jobs/{id}",
  summary: "One job with its timeline",
  description:
    "Producers see the payload. Others see it with include_payload=true, which takes the role manager and leaves an audit entry.",
  access: ["producer", "staff"],
  params: z.object({ id: field.id }),
  query: z.strictObject({ include_payload: field.flag.optional() }),
  answers: { 200: { description: "The job.", body: fullJob } },
  refusals: ["JOB_NOT_FOUND"],
});

export const cancelJob = defineRoute({
  id: "cancelJob",
  tag: "Jobs",
  method: "POST",
  path: "/api/jobs/{id}/cancel",
  summary: "Cancel a job; a running one is asked to stop",
  access: ["producer", "manager"],
  params: z.object({ id: field.id }),
  body: request(
    "Cancellation",
    z.strictObject({ reason: field.text(2_000).optional() }),
  ).optional(),
  answers: {
    200: {
      description: "Cancelled, or requested while it runs.",
      body: response(
        "Cancelled",
        z.object({ id: field.id, result: z.enum(["cancelled", "requested"]) }),
      ),
    },
  },
  refusals: ["JOB_NOT_FOUND", "ILLEGAL_TRANSITION"],
});

export const reprocessed = response(
  "Reprocessed",
  z.object({
    message: z.string(),
    dlq_id: field.id,
    new_job_id: field.id,
    new_idempotency_key: z.string(),
  }),
);

export const retryJob = defineRoute({
  id: "retryJob",
  tag: "Jobs",
  method: "POST",
  path: "/api/jobs/{id}/retry",
  summary: "Run a dead, cancelled or expired job again, as a new job that is linked to it",
  access: ["manager"],
  params: z.object({ id: field.id }),
  body: request("Notes", z.strictObject({ notes: field.notes })),
  answers: { 201: { description: "The new job.", body: reprocessed } },
  refusals: ["JOB_NOT_FOUND", "ILLEGAL_TRANSITION", "QUEUE_INACTIVE"],
});

export const listAdminQueue = defineRoute({
  id: "listAdminQueue",
  tag: "Administration",
  method: "GET",
  path: "/api/jobs/admin/queue",
  summary: "Find jobs, as operators do",
  access: ["manager"],
  query: z.strictObject(filters),
  answers: { 200: { description: "A page of them.", body: jobPage } },
  refusals: ["TENANT_FORBIDDEN", "CURSOR_INVALID"],
});

const minuteCounts = {
  enqueued: z.number(),
  completed: z.number(),
  retried: z.number().describe("Runs that failed and are tried again."),
  dead: z.number(),
};

export const readAdminStatistics = defineRoute({
  id: "readAdminStatistics",
  tag: "Administration",
  method: "GET",
  path: "/api/jobs/admin/queue/statistics",
  summary: "How many jobs each queue has seen and holds, and what came of the last minutes",
  description: "A key that belongs to a tenant sees its own queues only.",
  access: ["manager"],
  query: z.strictObject({
    minutes: z.coerce
      .number()
      .int()
      .min(1)
      .max(mostSeriesMinutes)
      .default(30)
      .describe("How far `series` and `recent` go back."),
    queue_id: field.queueId.optional().describe("This queue alone."),
  }),
  answers: {
    200: {
      description: "Totals, and the same by queue.",
      body: response(
        "AdminStatistics",
        z.object({
          from: field.timeOut.describe("So many minutes ago, or when the first queue was made."),
          to: field.timeOut.describe("Now. A rate is `recent` by the time between the two."),
          totals: z.object({
            enqueued: z.number(),
            completed: z.number(),
            dead: z.number(),
            removed: z.number(),
            retried: z.number(),
            depth: z.number(),
          }),
          queues: z.array(
            z.object({
              queue_id: z.int(),
              name: z.string(),
              tenant_id: z.string().nullable(),
              enqueued: z.number(),
              completed: z.number(),
              dead: z.number(),
              removed: z.number(),
              retried: z.number(),
              depth: z.number().describe("Neither ended nor removed."),
              recent: z.object(minuteCounts).describe("Of the minutes asked for."),
            }),
          ),
          series: z
            .array(z.object({ at: field.timeOut, ...minuteCounts }))
            .describe("Minute by minute, the oldest first; the last one is not over."),
        }),
      ),
    },
  },
  refusals: ["QUEUE_NOT_FOUND"],
});
