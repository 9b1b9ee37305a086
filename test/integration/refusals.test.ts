// What callers without types may say about triggers and webhooks: refused with a code, never half done.

import { expect, test } from "vitest";
import type { Millrace } from "../../src/index.ts";
import { refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();
const id = "00000000-0000-7000-8000-000000000000";
const url = "https://example.com/";
const time = { name: "wrong", type: "TIME", cron: "@daily", jobType: "x" };
const items = { name: "wrong", type: "QUEUE", queue: "inbox", jobType: "x" };
const held = { id, token: { claimId: id, claimNo: 1 } };

// biome-ignore lint/suspicious/noExplicitAny: what is not allowed is the point.
type Anything = any;
type Call = (millrace: Anything) => unknown;

const cases: readonly (readonly [string, Call])[] = [
  ["TRIGGER_INVALID", ({ triggers }) => triggers.create(undefined)],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.create(null)],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.create([])],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.update(id, null)],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.update(id, 5)],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.update(id, { job: null })],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.update(id, { nextFireAt: new Date() })],
  ["OPTION_INVALID", ({ triggers }) => triggers.list(null)],
  ["OPTION_INVALID", ({ triggers }) => triggers.list({ enabled: true })],
  ["OPTION_INVALID", ({ triggers }) => triggers.list({ tenant: "\u0000" })],
  ["OPTION_INVALID", ({ triggers }) => triggers.list({ name: {} })],
  ["OPTION_INVALID", ({ triggers }) => triggers.list({}, -1)],
  ["OPTION_INVALID", ({ triggers }) => triggers.list({}, 1e12)],
  ["SCHEDULE_INVALID", async ({ triggers }) => triggers.preview({ cron: 5 })],
  ["SCHEDULE_INVALID", async ({ triggers }) => triggers.preview({ cron: "@daily", timeZone: 5 })],
  ["OPTION_INVALID", async ({ triggers }) => triggers.preview({ cron: "@daily" }, { after: "x" })],
  [
    "OPTION_INVALID",
    async ({ triggers }) => triggers.preview({ cron: "@daily" }, { after: new Date(Number.NaN) }),
  ],
  [
    "OPTION_INVALID",
    async ({ triggers }) => triggers.preview({ cron: "@daily" }, { after: new Date(8.64e15) }),
  ],
  ["SCHEDULE_INVALID", async ({ triggers }) => triggers.preview(undefined)],
  ["SCHEDULE_INVALID", async ({ triggers }) => triggers.preview("@daily")],
  ["SCHEDULE_INVALID", async ({ triggers }) => triggers.preview({})],
  ["OPTION_INVALID", async ({ triggers }) => triggers.preview({ cron: "@daily" }, null)],
  ["OPTION_INVALID", async ({ triggers }) => triggers.preview({ cron: "@daily" }, { cuont: 1 })],
  ["UNKNOWN_PRIORITY", ({ triggers }) => triggers.create({ ...time, priority: Symbol() })],
  ["UNKNOWN_PRIORITY", ({ triggers }) => triggers.create({ ...time, priority: {} })],
  ["OPTION_INVALID", ({ triggers }) => triggers.create({ ...time, jobQueue: null })],
  ["OPTION_INVALID", ({ triggers }) => triggers.create({ ...time, jobQueue: Symbol() })],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.create({ ...items, payload: new Date(0) })],
  ["TRIGGER_INVALID", ({ triggers }) => triggers.create({ ...items, payload: new Map() })],
  ["OPTION_INVALID", ({ triggers }) => triggers.settleItem({ id, token: null }, id, {})],
  ["JOB_NOT_FOUND", ({ triggers }) => triggers.settleItem({ ...held, id: "x" }, id, {})],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.create(undefined)],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.create({ url, secret: "my own" })],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.create({ url, isActive: false })],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.update(id, null)],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.update(id, { tenant: "other" })],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.rotateSecret(id, null)],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.rotateSecret(id, { overlap: 1 })],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.create({ url }, null)],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.create({ url }, "a\u0000b")],
  ["OPTION_INVALID", ({ webhooks }) => webhooks.delete(id, {})],
  ["OPTION_INVALID", ({ notifications }) => notifications.start(null)],
  ["OPTION_INVALID", ({ notifications }) => notifications.start({ retry: 5 })],
  ["OPTION_INVALID", ({ notifications }) => notifications.start({ retries: 5 })],
  ["OPTION_INVALID", ({ notifications }) => notifications.start({ concurrency: 0 })],
];

test.each(cases)("%s, case %#", async (code, call) => {
  const millrace: Millrace = instances.millrace;
  const attempt = (async () => call(millrace))();
  expect((await refusal(attempt)).code).toBe(code);
  expect(await millrace.triggers.list()).toEqual([]);
  expect(await millrace.webhooks.list()).toEqual([]);
  expect(await millrace.notifications.report()).toBeNull();
});
