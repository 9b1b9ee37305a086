// Completions leave over a connection of their own while there is a backlog.

import { expect, it } from "vitest";
import { defineJob, type EventMap } from "../../src/index.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
const count = 12_000;

async function backlog() {
  const { millrace } = instances;
  const runs = new Map<number, number>();
  const job = defineJob({
    type: "lane",
    queue: newQueue(),
    run: ({ payload }: { payload: unknown }) => {
      runs.set(Number(payload), (runs.get(Number(payload)) ?? 0) + 1);
    },
  });
  await millrace.enqueueMany(job, [...Array(count).keys()]);
  const completed = async () => {
    const queues = await millrace.queues();
    return queues.find(({ name }) => name === job.queue)?.counts.completed;
  };
  return { job, runs, completed };
}

const settlers = () =>
  instances.query<{ pid: number }>(
    `select pid from pg_stat_activity
     where datname = current_database() and application_name like 'millrace settler%'`,
  );

it("settles a backlog beside its claims: each job once, and every one counted", async () => {
  const { job, runs, completed } = await backlog();
  await instances.work([job], { concurrency: 200 });
  await until("all are settled", async () => (await completed()) === count);
  expect(await settlers()).toHaveLength(1);
  expect(runs.size).toBe(count);
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
  const [left] = await instances.query<{ claims: number }>(
    "select count(*)::int as claims from millrace.claim",
  );
  expect(left?.claims).toBeLessThan(20);
});

it("repeats what a broken connection may have settled, and runs nothing again", async () => {
  const failures: EventMap["service.failed"][] = [];
  instances.millrace.events.on("service.failed", (failure) => failures.push(failure));
  while (failures.length === 0) {
    const { job, runs, completed } = await backlog();
    const worker = await instances.work([job], { concurrency: 200 });
    while ((await completed()) !== count) {
      for (const { pid } of await settlers()) {
        await instances.query("select pg_terminate_backend($1)", [pid]);
      }
    }
    await worker.stop();
    expect([...runs.values()].every((times) => times === 1)).toBe(true);
    expect(runs.size).toBe(count);
  }
});

it("stops with everything settled that had ended", async () => {
  const { job, runs, completed } = await backlog();
  const worker = await instances.work([job], { concurrency: 200 });
  await until("many have run", () => runs.size > 3_000);
  await worker.stop();
  expect(await completed()).toBe(runs.size);
  expect(await settlers()).toEqual([]);
});
