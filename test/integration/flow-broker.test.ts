// Controlled queues over Redis: PostgreSQL decides the order there, and nothing is hinted.

import { expect, it } from "vitest";
import { BrokerTrial, numbers, recorded } from "../support/broker-trial.ts";

const broker = BrokerTrial.use();

it("a queue that becomes fair while it is worked on loses nothing", async () => {
  const { job, runs } = recorded();
  const producers = [await broker.connect(), await broker.connect()];
  for (let i = 0; i < 3; i++) await (await broker.connect()).work([job]);
  const send = (tenant: string, from: number) =>
    Promise.all(
      producers.flatMap((producer, p) =>
        numbers(150).map((n) => producer.enqueue(job, `${tenant} ${p}.${from + n}`, { tenant })),
      ),
    );
  await send("first", 0);
  await Promise.all([send("first", 150), send("second", 0), send("third", 0)]);
  await broker.trial.drained();
  expect(new Set(runs).size).toBe(1_200);
  expect(runs).toHaveLength(1_200);
});

it("jobs of a controlled queue are not hinted, and start all the same", async () => {
  const window = await broker.openWindow();
  const producer = await broker.connect();
  const { job, runs } = recorded();
  await producer.configureQueue("default", { concurrency: 2 });
  await producer.enqueueMany(job, numbers(20));
  expect(await window.size()).toBe(0);
  await (await broker.connect()).work([job]);
  await broker.trial.drained();
  expect(runs).toHaveLength(20);
});
