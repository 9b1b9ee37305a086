import type { Served } from "../served.ts";
import { automationRoutes } from "./automation.ts";
import { breakerRoutes } from "./breakers.ts";
import { clusterRoutes } from "./cluster.ts";
import { deadLetterRoutes } from "./dead-letters.ts";
import { itemRoutes } from "./items.ts";
import { jobRoutes } from "./jobs.ts";
import { queueRoutes } from "./queues.ts";
import { systemRoutes } from "./system.ts";
import { tenantRoutes } from "./tenants.ts";

export const routes: readonly Served[] = [
  ...systemRoutes,
  ...jobRoutes,
  ...queueRoutes,
  ...itemRoutes,
  ...deadLetterRoutes,
  ...automationRoutes,
  ...clusterRoutes,
  ...breakerRoutes,
  ...tenantRoutes,
];
