// Every route of the service.

import * as automation from "./automation.ts";
import * as breakers from "./breakers.ts";
import * as cluster from "./cluster.ts";
import * as deadLetters from "./dead-letters.ts";
import * as explain from "./explain.ts";
import * as items from "./items.ts";
import * as jobs from "./jobs.ts";
import * as queues from "./queues.ts";
import type { Route } from "./route.ts";
import * as system from "./system.ts";
import * as tenants from "./tenants.ts";

const isRoute = (value: unknown): value is Route =>
  typeof value === "object" && value !== null && "method" in value && "answers" in value;

export const contract: readonly Route[] = [
  system,
  cluster,
  jobs,
  explain,
  queues,
  items,
  deadLetters,
  automation,
  breakers,
  tenants,
].flatMap((part) => Object.values(part).filter(isRoute));
