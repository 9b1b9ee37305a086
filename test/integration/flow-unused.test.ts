// What a queue pays for flow control that it does not use: nothing, so its jobs go through without any of it.

import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { newQueue, useMillrace } from "../support/instance.ts";

const instances = useMillrace();

test("a plain queue touches none of the tables and functions of flow control", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const job = defineJob({ type: "plain", queue, run: ({ payload }) => payload });
  // The first job of a queue gives its tenant a slot: once, and before the queue is a plain one.
  await millrace.enqueue(job, 0);
  for (const table of ["queue_turn", "slot_cursor", "lane_cursor", "start_count", "rate_bucket"])
    await instances.query(`drop table millrace.${table}`);
  await instances.query("drop table millrace.tenant_count");
  const functions = ["claim_lanes", "pick_lanes", "lane_gate", "queue_gate", "slots_in_turn"];
  for (const name of functions) await instances.query(`drop function millrace.${name} cascade`);
  const numbers = Array.from({ length: 500 }, (_, n) => n);
  const before = await millrace.enqueueMany(job, numbers);
  await instances.work([job]);
  const after = [
    ...(await millrace.enqueueMany(job, numbers, (n) => ({ key: `${queue}-${n}` }))),
    await millrace.enqueue(job, "one"),
    await millrace.enqueue(job, "late", { delayMs: 50 }),
  ];
  for (const { id } of [...before, ...after])
    expect((await millrace.waitFor(id)).state).toBe("completed");
});
