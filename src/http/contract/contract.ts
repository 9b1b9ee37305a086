// Every route of the service.

import * as automation from "./automation.ts";
import * as breakers from "./breakers.ts";
import * as cluster from "./cluster.ts";
import * as deadLetters from "./dead-letters.ts";
import * as events from "./events.ts";
import * as explain from "./explain.ts";
import * as items from "./items.ts";
import * as jobs from "./jobs.ts";
import * as metrics from "./metrics.ts";
import * as queues from "./queues.ts";
import type { Route } from "./route.ts";
import * as session from "./session.ts";
import * as system from "./system.ts";
import * as tenants from "./tenants.ts";

const isRoute = (value: unknown): value is Route =>
  typeof value === "object" && value !== null && "method" in value && "answers" in value;

export const contract: readonly Route[] = [
  system,
  session,
  cluster,
  metrics,
  jobs,
  explain,
  queues,
  items,
  deadLetters,
  automation,
  events,
  breakers,
  tenants,
].flatMap((part) => Object.values(part).filter(isRoute));
