import { expect, it } from "vitest";
import { PlainJobs } from "../../src/client/plain-jobs.ts";
import { loadConfig } from "../../src/config.ts";
import { defineJob } from "../../src/index.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";

const limitless = { controlled: false, rateLimit: null, tenantRateLimit: null };
const job = { id: "1", type: "mail", queueId: 1, tenant: "default", weight: 5, maxAttempts: 5 };

function stage(queue: object = {}) {
  const state = { queues: 0, tenants: 0, until: 10, now: 0, known: undefined as unknown };
  const plain = new PlainJobs({
    queues: {
      byId: () => ({ ...limitless, tenantCapacity: null, ...queue }) as never,
      freshUntil: () => state.until,
      get changes() {
        return state.queues;
      },
    },
    tenants: {
      known: () => state.known as never,
      freshUntil: 20,
      get changes() {
        return state.tenants;
      },
    },
    ...{ config: loadConfig({}, {}), events: new Events() },
    clock: { ...systemClock, monotonic: () => state.now },
  });
  const definition = defineJob({ type: "mail", run: () => {} }) as never;
  return { state, plain, definition, make: () => plain.make(definition, { n: 2 }) };
}

it("makes one like the one before, with an id and a payload of its own", () => {
  const { plain, definition, make } = stage();
  expect(make()).toBeNull();
  plain.note(definition, { ...job, payload: "{}" });
  const [made] = make() ?? [];
  expect(made).toMatchObject({ ...job, id: expect.not.stringMatching(/^1$/), payload: '{"n":2}' });
});

it.each(["queues", "tenants", "now"] as const)("looks again when %s have moved on", (what) => {
  const { state, plain, definition, make } = stage();
  plain.note(definition, { ...job, payload: "{}" });
  expect(make()).not.toBeNull();
  state[what] += 10;
  expect(make()).toBeNull();
  state.until = 100;
  plain.note(definition, { ...job, payload: "{}" });
  expect(make()).not.toBeNull();
});

it.each([
  ["a controlled queue", { controlled: true }, {}],
  ["a rate limit", { rateLimit: { limit: 1, windowMs: 1 } }, {}],
  ["a rate limit per tenant", { tenantRateLimit: { limit: 1, windowMs: 1 } }, {}],
  ["a capacity per tenant", { tenantCapacity: 1 }, {}],
  ["notes beside the payload", {}, { meta: { priority: "high" } }],
  ["a lane", {}, { lane: 7 }],
])("makes none after one with %s", (_, queue, more) => {
  const { plain, definition, make } = stage(queue);
  plain.note(definition, { ...job, payload: "{}", ...more });
  expect(make()).toBeNull();
});

it("makes none of a tenant with settings, nor of a type that reads payloads", () => {
  const { state, plain, definition, make } = stage();
  state.known = {};
  plain.note(definition, { ...job, payload: "{}" });
  expect(make()).toBeNull();
  state.known = undefined;
  const labelled = defineJob({ type: "mail", labels: ["n"], run: () => {} }) as never;
  plain.note(labelled, { ...job, payload: "{}" });
  expect(plain.make(labelled, {})).toBeNull();
});
