// All of the service in one file, so that what was called can be held against the contract at the end.

import { describe, expect, test } from "vitest";
import { contract } from "../../src/http/contract/contract.ts";
import { seen } from "../support/http.ts";
import { accessSuite } from "./access.ts";
import { auditSuite } from "./audit.ts";
import { automationSuite } from "./automation.ts";
import { breakersSuite } from "./breakers.ts";
import { deadLettersSuite } from "./dead-letters.ts";
import { doorSuite } from "./door.ts";
import { eventStreamsSuite } from "./event-streams.ts";
import { eventsSuite } from "./events.ts";
import { explainSuite } from "./explain.ts";
import { forgerySuite } from "./forgery.ts";
import { frameSuite } from "./frame.ts";
import { inputSuite } from "./input.ts";
import { isolationSuite } from "./isolation.ts";
import { itemsSuite } from "./items.ts";
import { jobsSuite } from "./jobs.ts";
import { jwtSuite } from "./jwt.ts";
import { keysSuite } from "./keys.ts";
import { labelsSuite } from "./labels.ts";
import { metricsSuite } from "./metrics.ts";
import { queuesSuite } from "./queues.ts";
import { refusalsSuite } from "./refusals.ts";
import { sameRequestSuite } from "./same-request.ts";
import { sessionsSuite } from "./sessions.ts";
import { staticSuite } from "./static.ts";
import { strictnessSuite } from "./strictness.ts";
import { tenantsSuite } from "./tenants.ts";

describe("access", accessSuite);
describe("frame", frameSuite);
describe("input", inputSuite);
describe("keys", keysSuite);
describe("sessions", sessionsSuite);
describe("the dashboard's files", staticSuite);
describe("forgery", forgerySuite);
describe("events", eventsSuite);
describe("event streams", eventStreamsSuite);
describe("tokens", jwtSuite);
describe("jobs", jobsSuite);
describe("door", doorSuite);
describe("explain", explainSuite);
describe("labels", labelsSuite);
describe("queues", queuesSuite);
describe("items", itemsSuite);
describe("dead letters", deadLettersSuite);
describe("audit", auditSuite);
describe("automation", automationSuite);
describe("metrics", metricsSuite);
describe("breakers", breakersSuite);
describe("tenants", tenantsSuite);
describe("refusals", refusalsSuite);
describe("isolation", isolationSuite);
describe("the same request", sameRequestSuite);
describe("strictness", strictnessSuite);

test("every route was called with every answer and every refusal of its own that it declares", () => {
  const missing = contract.flatMap((route) => {
    const name = `${route.method} ${route.path}`;
    const got = seen.get(name) ?? new Set();
    const access = route.access === "public" ? [] : ["UNAUTHENTICATED"];
    const wanted = [...Object.keys(route.answers), ...route.refusals, ...access];
    return wanted.filter((one) => !got.has(one)).map((one) => `${name}: ${one}`);
  });
  expect(missing).toEqual([]);
});
