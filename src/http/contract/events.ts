import { z } from "zod";
import { eventKinds } from "../../store/event.ts";
import * as field from "./fields.ts";
import { defineRoute } from "./route.ts";

export const readEvents = defineRoute({
  id: "readEvents",
  tag: "Events",
  method: "GET",
  path: "/api/events",
  summary: "What happens, as it happens (server-sent events)",
  description:
    "Each event's data is JSON: `{ kind, at, tenant_id, data }`. `open` comes first and says where the stream begins; `counts` comes once a second with the figures of queues that changed, and has no id; `gap` says that events before it are not kept any more. Resumes with `Last-Event-ID` on any server within a day. Audit entries take the role manager.",
  access: ["staff"],
  query: z.strictObject({
    kinds: field
      .words(["counts", ...eventKinds])
      .optional()
      .describe("Only these, separated by commas; all of them unless told."),
  }),
  headers: z.object({
    "last-event-id": z
      .string()
      .regex(/^\d{1,15}$/, "must be the id of an event")
      .optional()
      .describe("The id of the last event that was seen: go on after it."),
  }),
  answers: {
    200: { description: "A stream that does not end.", contentType: "text/event-stream" },
  },
  refusals: ["RATE_LIMITED"],
});
