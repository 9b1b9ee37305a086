// Who tells of what: the leader, a process that started notifications, or one that only works.

import { describe, expect, it, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { newQueue } from "../support/instance.ts";
import { useTeller } from "../support/teller.ts";
import { until } from "../support/until.ts";

const { instances, teller, receiver, create, fail, failing } = useTeller();

describe("with nobody who started notifications", () => {
  const restless = { leaderTtlMs: 500, webhooks: { allowInsecureLoopback: true } };

  it("a leader tells of a failure, and delivers", async () => {
    await create();
    await teller().manage();
    const id = await fail();
    const [received] = await receiver().hears(1);
    expect(received?.told.data.job_id).toBe(id);
    expect(receiver().received).toHaveLength(1);
  });

  it("a process that only works does so when nobody else has for a while", async () => {
    await create();
    const worker = await instances.connect(restless);
    const job = failing(newQueue());
    await worker.work([job]);
    const { id } = await worker.enqueue(job, {});
    const [received] = await receiver().hears(1);
    expect(received?.told.data.job_id).toBe(id);
    expect(receiver().received).toHaveLength(1);
  });

  it("a process that only works finds deliveries that a dead one has left", async () => {
    const { id } = await create();
    const test = await teller().webhooks.test(id);
    const worker = await instances.connect(restless);
    await worker.work([failing(newQueue())]);
    expect(await worker.result(test.id)).toEqual({ delivered: true, status: 204 });
  });
});

test("a trigger that begins to fail is told to a webhook once, until it has fired again", async () => {
  const { millrace } = instances;
  const webhook = await create({ kinds: ["trigger.failed"] });
  await teller().notifications.start();
  const [name, queue] = [newQueue(), newQueue()];
  await millrace.configureQueue(queue, { capacity: 0 });
  await instances.work([defineJob({ type: "other", queue: newQueue(), run: () => {} })]);
  const common = { name, type: "TIME", cron: "* * * * * *", missedSlots: "last" } as const;
  const { id } = await millrace.triggers.create({ ...common, jobType: "x", jobQueue: queue });
  const retryNow = async () => {
    await instances.query("update millrace.trigger set retry_at = now() where id = $1", [id]);
    await instances.query("notify millrace_millrace, 'triggers'");
  };
  const failures = async () => (await millrace.triggers.get(id))?.failures ?? 0;
  for (const count of [1, 2, 3]) {
    await until(`it has failed ${count} times`, async () => (await failures()) >= count);
    await retryNow();
  }
  const raised = async () => {
    const names = "select from millrace.unique_name where key like $1";
    const waiting = "select from millrace.notification where kind = 'trigger.failed'";
    const rows = await instances.query(`${names} union all ${waiting}`, [`${webhook.id}/%`]);
    return rows.length;
  };
  await receiver().hears(1);
  expect(await raised()).toBe(1);
  expect(receiver().received[0]?.told).toMatchObject({
    ...{ kind: "trigger.failed", tenant: "default" },
    data: { trigger_id: id, name, error: { code: "QUEUE_FULL" } },
  });
  await millrace.configureQueue(queue, { capacity: null });
  await retryNow();
  await until("it fires", async () => (await failures()) === 0);
  await millrace.configureQueue(queue, { capacity: 0 });
  await receiver().hears(2);
  expect(await raised()).toBe(2);
  await millrace.triggers.delete(id);
});
