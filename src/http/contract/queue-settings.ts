// What can be set of a queue, and how it reads.

import { z } from "zod";
import * as field from "./fields.ts";

const most = 2_147_483_647;
const days = z.int().min(1).max(3650);
const depth = z.int().min(0).max(most);
const atOnce = z.int().min(1).max(most);
const stepMs = z.int().min(1).max(86_400_000);
const rate = z.strictObject({
  limit: z.int().min(1).max(most),
  window_ms: z.int().min(10).max(86_400_000),
});
const rateOut = z.object({ limit: z.int(), window_ms: z.int() });

const about = {
  max_retries: "Null: as many as the job's type says.",
  enforce_unique_reference:
    "Each tenant's references once. Switched on, it counts the items that are there already, and is refused where a reference is used twice.",
  is_active: "False: refuses items and serves none.",
  capacity: "How many jobs may wait and run; null: no limit.",
  warn_depth: "From so many on a notification is raised; null: never.",
  tenant_capacity: "The capacity for the jobs of each tenant.",
  concurrency: "How many run at once, in all processes together; null: no limit.",
  key_concurrency: "The same for each limit key.",
  throttle: "How many start in any window; null: no limit.",
  key_throttle: "The same for each ordering or limit key.",
  rate_limit: "How many may be enqueued in a window; more are answered 429. Null: no limit.",
  tenant_rate_limit: "The same for each tenant.",
  ageing_step_ms:
    "What one step of priority is worth in waiting time; null: priorities are strict.",
  fair: "Tenants take turns as soon as there is a second one.",
  dead_letter_blocks_key:
    "True: a dead letter holds up its ordering key until somebody deals with it.",
} as const;

export const settings = {
  description: field.text(2_000).nullable().optional(),
  max_retries: z.int().min(0).max(999).nullable().optional().describe(about.max_retries),
  enforce_unique_reference: z.boolean().optional().describe(about.enforce_unique_reference),
  is_active: z.boolean().optional().describe(about.is_active),
  capacity: depth.nullable().optional().describe(about.capacity),
  warn_depth: depth.nullable().optional().describe(about.warn_depth),
  tenant_capacity: depth.nullable().optional().describe(about.tenant_capacity),
  retention_days: days.optional(),
  dead_retention_days: days.nullable().optional(),
  timeline_retention_days: days.nullable().optional(),
  key_ttl_seconds: z.int().min(1).max(most).optional(),
  concurrency: atOnce.nullable().optional().describe(about.concurrency),
  key_concurrency: atOnce.nullable().optional().describe(about.key_concurrency),
  throttle: rate.nullable().optional().describe(about.throttle),
  key_throttle: rate.nullable().optional().describe(about.key_throttle),
  rate_limit: rate.nullable().optional().describe(about.rate_limit),
  tenant_rate_limit: rate.nullable().optional().describe(about.tenant_rate_limit),
  ageing_step_ms: stepMs.nullable().optional().describe(about.ageing_step_ms),
  fair: z.boolean().optional().describe(about.fair),
  dead_letter_blocks_key: z.boolean().optional().describe(about.dead_letter_blocks_key),
  external_id: field.name.nullable().optional(),
};

export const settingsOut = {
  description: z.string().nullable(),
  max_retries: z.int().nullable().describe(about.max_retries),
  enforce_unique_reference: z.boolean(),
  is_active: z.boolean(),
  capacity: z.int().nullable(),
  warn_depth: z.int().nullable(),
  tenant_capacity: z.int().nullable(),
  retention_days: z.int(),
  dead_retention_days: z.int().nullable(),
  timeline_retention_days: z.int().nullable(),
  key_ttl_seconds: z.int(),
  concurrency: z.int().nullable(),
  key_concurrency: z.int().nullable(),
  throttle: rateOut.nullable(),
  key_throttle: rateOut.nullable(),
  rate_limit: rateOut.nullable(),
  tenant_rate_limit: rateOut.nullable(),
  ageing_step_ms: z.int().nullable(),
  fair: z.boolean(),
  dead_letter_blocks_key: z.boolean(),
  external_id: z.string().nullable(),
};
