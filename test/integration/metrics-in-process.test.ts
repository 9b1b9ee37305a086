// Metrics of a process that serves no API.

import { expect, test } from "vitest";
import { MetricsServer } from "../../src/http/metrics-server.ts";
import { createMetrics, defineJob } from "../../src/index.ts";
import { Exposition } from "../support/exposition.ts";
import { newQueue, useMillrace } from "../support/instance.ts";

const instances = useMillrace();

test("are to be had as text, from when they were asked for until they are closed", async () => {
  const other = await instances.connect();
  const job = defineJob({ type: "in.process", queue: newQueue() });
  const { queue } = job;
  await other.enqueue(job, 0);
  const metrics = createMetrics(other);
  await other.enqueue(job, 1);
  const read = new Exposition(await metrics.text());
  expect(read.value("millrace_jobs_enqueued_total", { queue })).toBe(1);
  expect(read.value("millrace_queue_depth", { queue, state: "ready" })).toBe(2);
  expect(read.names).not.toContain("millrace_redis_health");
  expect(read.names).not.toContain("millrace_robots_waiting");
  metrics.close();
  await other.enqueue(job, 2);
  const closed = new Exposition(await metrics.text());
  expect(closed.value("millrace_jobs_enqueued_total", { queue })).toBe(1);
});

test("are served by a port of their own, and nothing else is", async () => {
  const server = new MetricsServer({ millrace: instances.millrace, port: 0 });
  await server.start();
  try {
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    const answer = await fetch(server.url);
    expect(answer.headers.get("content-type")).toContain("version=0.0.4");
    expect(new Exposition(await answer.text()).value("millrace_up")).toBe(1);
    expect((await fetch(server.url, { method: "POST" })).status).toBe(404);
    expect((await fetch(new URL("/api/jobs", server.url))).status).toBe(404);
  } finally {
    await server.stop();
  }
});

test("tell how many jobs are scheduled, about, where there are too many to count", async () => {
  const other = await instances.connect();
  const job = defineJob({ type: "much.later", queue: newQueue() });
  const { queue } = job;
  await other.enqueue(job, 1, { delayMs: 3_600_000 });
  const many = 40_000;
  await instances.query(
    `with made as (
      insert into millrace.scheduled_job (id, due_at, created_at, queue_id, weight, max_attempts, type, tenant, payload)
      select gen_random_uuid(), now() + interval '1 day', now(), q.id, 5, 5, 'much.later', 'default',
        to_json(repeat('beside the door ', 20))
      from millrace.queue q, generate_series(1, $2::int) where q.name = $1 returning queue_id
    )
    insert into millrace.queue_count (queue_id, process, minute, enqueued)
    select queue_id, gen_random_uuid(), now(), count(*) from made group by queue_id`,
    [queue, many],
  );
  const metrics = createMetrics(other);
  const read = new Exposition(await metrics.text());
  const [{ pages = 0 } = {}] = await instances.query<{ pages: number }>(
    "select pg_relation_size('millrace.scheduled_job') / 8192 as pages",
  );
  expect(Number(pages)).toBeGreaterThan(1_500);
  const scheduled = read.value("millrace_queue_depth", { queue, state: "scheduled" }) ?? 0;
  expect(scheduled).toBeGreaterThan(0.8 * many);
  const ready = read.value("millrace_queue_depth", { queue, state: "ready" }) ?? 0;
  expect(ready + scheduled).toBe(many + 1);
  metrics.close();
});
