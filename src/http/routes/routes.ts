import type { Served } from "../served.ts";
import { automationRoutes } from "./automation.ts";
import { breakerRoutes } from "./breakers.ts";
import { clusterRoutes } from "./cluster.ts";
import { deadLetterRoutes } from "./dead-letters.ts";
import { eventRoutes } from "./events.ts";
import { itemRoutes } from "./items.ts";
import { jobRoutes } from "./jobs.ts";
import { metricRoutes } from "./metrics.ts";
import { queueRoutes } from "./queues.ts";
import { sessionRoutes } from "./session.ts";
import { systemRoutes } from "./system.ts";
import { tenantRoutes } from "./tenants.ts";

export const routes: readonly Served[] = [
  ...systemRoutes,
  ...sessionRoutes,
  ...jobRoutes,
  ...queueRoutes,
  ...itemRoutes,
  ...deadLetterRoutes,
  ...automationRoutes,
  ...clusterRoutes,
  ...metricRoutes,
  ...eventRoutes,
  ...breakerRoutes,
  ...tenantRoutes,
];
