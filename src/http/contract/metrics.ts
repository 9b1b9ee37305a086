import { z } from "zod";
import { defineRoute, response } from "./route.ts";

export const readMetrics = defineRoute({
  id: "readMetrics",
  tag: "Operations",
  method: "GET",
  path: "/metrics",
  summary: "Metrics of this process and its queues, as Prometheus reads them",
  description:
    "Text format 0.0.4. The figures are of all tenants, so this takes a key without one; with MILLRACE_METRICS_PUBLIC=true it takes none. Answers while PostgreSQL is down, with millrace_up 0.",
  access: ["staff"],
  answers: {
    200: {
      description: "The metrics.",
      contentType: "text/plain",
      body: response("Metrics", z.string()),
    },
  },
  refusals: ["TENANT_FORBIDDEN"],
});
