import { metricsContentType } from "../../client/metrics.ts";
import { MillraceError } from "../../domain/errors.ts";
import { readMetrics } from "../contract/metrics.ts";
import { type Served, serve } from "../served.ts";

export const metricRoutes: readonly Served[] = [
  serve(readMetrics, async ({ identity }, { metrics, metricsArePublic }) => {
    if (identity.tenant !== null && !metricsArePublic) throw new MillraceError("TENANT_FORBIDDEN");
    const headers = { "content-type": metricsContentType };
    return { status: 200 as const, body: await metrics.text(), headers };
  }),
];
