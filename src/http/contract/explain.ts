import { z } from "zod";
import { jobStates } from "../../domain/job-state.ts";
import * as field from "./fields.ts";
import { defineRoute, response } from "./route.ts";

export const explainJob = defineRoute({
  id: "explainJob",
  tag: "Jobs",
  method: "GET",
  path: "/api/jobs/{id}/explain",
  summary: "Why a job is not running at this moment",
  description:
    "Asks the same conditions as the workers do. A key of a tenant is told the reason; of workers, of other tenants' jobs and of how many there are it is told nothing.",
  access: ["producer", "staff"],
  params: z.object({ id: field.id }),
  answers: {
    200: {
      description: "What holds it back; if it runs or has ended, that.",
      body: response(
        "JobExplanation",
        z.object({
          job_id: field.id,
          state: z.enum(jobStates),
          running: z.boolean(),
          reasons: z.array(
            z.object({
              code: z.string().describe("Stable; the guide to flow control lists them."),
              message: z.string(),
              until: field.timeOut.nullable().describe("When it ends by itself, if that is known."),
              holders: z
                .array(z.object({ job_id: field.id, worker: z.string().nullable() }))
                .describe("The jobs that hold what it waits for."),
            }),
          ),
        }),
      ),
    },
  },
  refusals: ["JOB_NOT_FOUND"],
});
