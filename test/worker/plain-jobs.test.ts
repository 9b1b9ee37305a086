import { expect, test } from "vitest";
import { newJob, noOptions } from "../../src/client/new-job.ts";
import { loadConfig } from "../../src/config.ts";
import { defineJob } from "../../src/index.ts";
import { Events } from "../../src/runtime/events.ts";
import type { Queue } from "../../src/store/store.ts";

const config = loadConfig({}, {});
const events = new Events();
const queue = { id: 7, maxAttempts: 4, enforceUniqueReference: true } as Queue;
const job = { type: "t", queue: "q", run: () => {} };

function bothWays(definition: object, payload: unknown, where = queue, by = config) {
  const of = definition as Parameters<typeof newJob>[0];
  const { id, ...plain } = newJob(of, payload, noOptions, where, by, events);
  const { id: other, ...worked } = newJob(of, payload, {}, where, by, events);
  expect(id).not.toBe(other);
  // As it is stored: what is not said is not there.
  expect(JSON.parse(JSON.stringify(plain))).toEqual(JSON.parse(JSON.stringify(worked)));
  return plain;
}

test.each([
  ["nothing more", {}],
  ["a priority", { priority: "high" }],
  ["times", { expiresInMs: 5_000, maxRuntimeMs: 300 }],
  ["attempts", { maxAttempts: 2 }],
  ["a version of its payload", { payloadVersion: "2.0" }],
  ["labels", { labels: ["n"] }],
  ["rules", { priority: () => "low", delayMs: () => 5, orderingKey: () => "k" }],
])("a job of a definition with %s is the same without options as with empty ones", (_, more) => {
  const definition = defineJob({ ...job, ...more });
  const payload_version = definition.payloadVersion ?? "1.1";
  for (const payload of [{ n: 1 }, { n: "2" }, null, undefined, { payload_version }])
    bothWays(definition, payload);
});

test("what is worked out once holds for one queue as it is, and for one configuration", () => {
  const definition = defineJob(job);
  expect(bothWays(definition, 1)).toMatchObject({ queueId: 7, maxAttempts: 4, payload: "1" });
  const changed = { ...queue, maxAttempts: 9 };
  expect(bothWays(definition, 2, changed)).toMatchObject({ maxAttempts: 9, payload: "2" });
  expect(bothWays(definition, 3)).toMatchObject({ maxAttempts: 4, payload: "3" });
  const open = { ...queue, maxAttempts: null } as unknown as Queue;
  const patient = loadConfig({ maxAttempts: 11 }, {});
  expect(bothWays(definition, 4, open, patient)).toMatchObject({ maxAttempts: 11 });
  expect(bothWays(definition, 5, open)).toMatchObject({ maxAttempts: config.maxAttempts });
});
