// Beside a broker, too, a worker that keeps up is handed what is stored; what it does not take is hinted.

import { expect, it } from "vitest";
import { BrokerTrial, numbers, recorded } from "../support/broker-trial.ts";
import { createGate } from "../support/gate.ts";
import { heardOf, untilHanded } from "../support/handovers.ts";
import { until } from "../support/until.ts";

const broker = BrokerTrial.use();
const sum = (handed: readonly { readonly jobs: number }[]) =>
  handed.reduce((all, { jobs }) => all + jobs, 0);

it("a stream goes to its worker with the flushes that store it", async () => {
  const { job, runs } = recorded();
  const [producer, consumer] = [await broker.connect(), await broker.connect()];
  await consumer.work([job], { concurrency: 50 });
  const made = heardOf(producer, "handover.made");
  const received = heardOf(consumer, "handover.received");
  await untilHanded(producer, job);
  let sent = 0;
  await until("a flush of several was handed over", async () => {
    await Promise.all(numbers(40).map(() => producer.enqueue(job, sent++)));
    return made.some(({ jobs }) => jobs > 1);
  });
  await broker.trial.drained();
  const ran = runs.filter((payload) => typeof payload === "number");
  expect(ran.sort((a, b) => a - b)).toEqual(numbers(sent));
  expect(sum(received)).toBe(sum(made));
});

it("what a busy worker does not take is hinted, whether it was offered to it or not", async () => {
  const { job, runs } = recorded();
  const gate = createGate();
  const run: typeof job.run = async (context) => {
    await job.run?.(context);
    if (context.payload === "waits") await gate.opened;
  };
  const window = await broker.openWindow();
  const [producer, consumer] = [await broker.connect(), await broker.connect()];
  await consumer.work([{ ...job, run }], { concurrency: 2 });
  await untilHanded(producer, job);
  for (const slot of ["first", "second"]) {
    await producer.enqueue(job, "waits");
    const wanted = slot === "first" ? 1 : 2;
    const waiting = () => runs.filter((payload) => payload === "waits").length;
    await until(`the ${slot} waits`, () => waiting() === wanted);
  }
  const made = heardOf(producer, "handover.made");
  for (const n of numbers(10)) await producer.enqueueMany(job, [3 * n, 3 * n + 1, 3 * n + 2]);
  // Before it says that it is busy, it may be handed some, and gives them back.
  await window.holds(30 - sum(made));
  gate.open();
  await broker.trial.drained();
  expect(runs.filter((payload) => typeof payload === "number")).toHaveLength(30);
});
