// An item as robots see it.

import { z } from "zod";
import * as field from "./fields.ts";
import { response } from "./route.ts";

export const statuses = ["NEW", "IN_PROGRESS", "DONE", "FAILED", "DELETED"] as const;

const fields = {
  id: field.id,
  queue_id: z.int(),
  reference: z.string().nullable(),
  status: z.enum(statuses),
  priority: z.int(),
  payload: z.unknown().describe("Null when masked."),
  payload_masked: z.boolean().describe("True: payload and result are for producers and robots."),
  result: z.unknown().describe("Null when masked."),
  error_message: z
    .string()
    .nullable()
    .describe(
      "Of the last run that failed, also while it waits for the next; its first 500 bytes.",
    ),
  exception_type: z
    .enum(["application", "business"])
    .nullable()
    .describe("As the robot said it of that run; null: it did not."),
  retries: z.int().describe("How many runs it has had before this one."),
  locked_by_robot_id: z.string().nullable(),
  locked_at: field.timeOut.nullable(),
  lock_expires_at: field.timeOut.nullable(),
  job_id: z.string().nullable().describe("The job that a trigger made of it."),
  created_at: field.timeOut,
  updated_at: field.timeOut,
};
export const item = response("Item", z.object(fields));
export const leasedItem = response(
  "LeasedItem",
  z.object({ ...fields, token: z.string().describe("What renews and settles it; keep it.") }),
);
