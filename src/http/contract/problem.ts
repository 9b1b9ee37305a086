import { z } from "zod";
import { response } from "./route.ts";

export const problem = response(
  "Problem",
  z.object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.string().describe("Stable: depend on this one."),
    detail: z.string(),
    instance: z.string().describe("The request's id, as in the header X-Request-Id."),
    errors: z
      .array(z.object({ path: z.string(), message: z.string(), code: z.string().optional() }))
      .optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
);
