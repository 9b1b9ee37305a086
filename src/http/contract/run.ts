import { z } from "zod";
import { response } from "./route.ts";

export const run = response(
  "Run",
  z.object({
    attempt: z.int(),
    worker: z.string(),
    started_at: z.string(),
    ended_at: z.string(),
    outcome: z.string(),
    error_class: z.string().nullable(),
    error_fingerprint: z.string().nullable(),
    message: z.string().nullable(),
    exception_type: z
      .enum(["application", "business"])
      .nullable()
      .describe("As the robot said it."),
    times: z.int().describe("How many snoozes in a row this stands for."),
  }),
);
