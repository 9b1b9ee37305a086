// Every metric moves: each is driven by what it is about, on real servers, and what the guide lists is
// what there is.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import {
  defineJob,
  JobFailure,
  Millrace,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
} from "../../src/index.ts";
import { Exposition } from "../support/exposition.ts";
import { createGate } from "../support/gate.ts";
import { adminKey, send } from "../support/http.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { Receiver } from "../support/receiver.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { expectBothReadersToAgree } from "../support/second-reader.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
let redis: RedisServer;
let millrace: Millrace;
let server: HttpServer;
let before: Exposition;

beforeAll(async () => {
  redis = await startRedis();
  millrace = await Millrace.connect({
    ...{ databaseUrl: instances.url, redisUrl: redis.url, logLevel: "silent" },
    ...{ pollMs: 200, reclaimMs: 200, drainMs: 0, leaseMs: 3_000 },
    webhooks: { allowInsecureLoopback: true },
    triggerMs: 100,
  });
  server = new HttpServer({ millrace, port: 0, adminKey, metricsArePublic: true });
  await server.start();
  before = await scrape();
});
afterAll(async () => {
  await server.stop();
  await millrace.stop();
  await redis.drop();
});

const call = (method: string, path: string, body?: unknown) =>
  send(server.url, method, path, { body });
const scrape = async () => new Exposition((await call("GET", "/metrics")).body);

/** What a metric says, once that is what is wanted. */
async function shows(
  name: string,
  labels: Record<string, string>,
  isWanted: (value: number) => boolean,
): Promise<number> {
  return until(`${name} ${JSON.stringify(labels)} is as it should be`, async () => {
    const value = (await scrape()).value(name, labels);
    return value !== undefined && isWanted(value) ? value : undefined;
  });
}

const is = (wanted: number) => (value: number) => value === wanted;
const some = (value: number) => value > 0;

/** A robot that is never heard of again; its item is taken back some time later. */
async function loseRobot(): Promise<void> {
  const queue_name = newQueue();
  await call("POST", "/api/queues", { name: queue_name });
  await call("POST", "/api/queue-items/add", { queue_name });
  await call("GET", `/api/queue-items/next?queue_name=${queue_name}&lease_seconds=1`);
}

describe("of jobs", () => {
  beforeAll(loseRobot);

  test("count what goes in, comes back and is refused", async () => {
    const queue = newQueue();
    const job = defineJob({ type: "plain", queue });
    await millrace.pauseQueue((await millrace.configureQueue(queue, { capacity: 2 })).name);
    await millrace.enqueue(job, 1, { key: queue });
    await millrace.enqueue(job, 1, { key: queue });
    await millrace.enqueue(job, 2, { delayMs: 3_600_000 });
    expect((await refusal(millrace.enqueue(job, 3))).code).toBe("QUEUE_FULL");
    const { body } = await call("POST", "/api/jobs", { type: "plain", queue });
    expect(body.code).toBe("QUEUE_FULL");
    await shows("millrace_jobs_enqueued_total", { queue }, is(2));
    await shows("millrace_enqueue_repeats_total", { queue }, is(1));
    await shows("millrace_enqueue_refusals_total", { code: "QUEUE_FULL" }, is(2));
    await shows("millrace_queue_depth", { queue, state: "ready" }, is(1));
    await shows("millrace_queue_depth", { queue, state: "scheduled" }, is(1));
    await shows("millrace_queue_paused", { queue }, is(1));
    await shows("millrace_queue_oldest_ready_age_seconds", { queue }, some);
  });

  test("time runs, and count failures by class, retries and dead letters", async () => {
    const queue = newQueue();
    const errors = {
      transient: () => new JobFailure("transient", "t"),
      retryable: () => new RetryableError("r"),
      rate_limited: () => new RateLimitedError("l"),
      non_retryable: () => new NonRetryableError("n"),
    };
    const gate = createGate();
    const baseMs = { transient: 1, retryable: 1, rate_limited: 1 };
    const job = defineJob({
      ...{ type: "failing", queue, retry: { baseMs } },
      async run({ payload, attempt }) {
        if (payload === "held") return gate.opened;
        if (attempt === 1) throw errors[payload as keyof typeof errors]();
      },
    });
    const worker = await millrace.work([job]);
    await millrace.enqueue(job, "held");
    await shows("millrace_queue_depth", { queue, state: "running" }, is(1));
    await shows("millrace_workers", {}, some);
    gate.open();
    for (const name of Object.keys(errors) as (keyof typeof errors)[]) {
      const { id } = await millrace.enqueue(job, name);
      await millrace.waitFor(id);
      await shows("millrace_job_failures_total", { queue, type: "failing", class: name }, is(1));
    }
    await shows("millrace_job_retries_total", { queue }, is(3));
    await shows("millrace_dead_letters_total", { queue }, is(1));
    await shows("millrace_job_runs_total", { queue, outcome: "completed" }, is(4));
    await shows("millrace_job_processing_duration_seconds_count", { queue }, is(8));
    await shows("millrace_dequeue_latency_seconds_count", { queue }, is(8));
    await shows("millrace_scheduler_scanned_total", {}, some);
    await shows("millrace_scheduler_queued_total", {}, some);
    await shows("millrace_scheduler_lateness_seconds_count", {}, some);
    await worker.stop();
  });

  test("count ends that are refused", async () => {
    const queue = newQueue();
    const gate = createGate();
    const job = defineJob({ type: "superseded", queue, run: () => gate.opened });
    const worker = await millrace.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    const taken =
      "update millrace.job set claim_no = claim_no + 1 where id = $1 and claim_id is not null returning 1";
    await until("it runs", async () => (await instances.query(taken, [id])).length > 0);
    gate.open();
    await shows("millrace_settles_refused_total", {}, is(1));
    await worker.stop();
  });

  test("count robots' items like any other job", async () => {
    const queue = newQueue();
    await call("POST", "/api/queues", { name: queue, max_retries: 1 });
    const next = `/api/queue-items/next?queue_name=${queue}`;
    for (const end of [{ status: "DONE" }, { status: "FAILED", exception_type: "business" }]) {
      await call("POST", "/api/queue-items/add", { queue_name: queue });
      const { id, token } = (await call("GET", next)).body;
      expect((await call("PUT", `/api/queue-items/${id}`, { ...end, token })).status).toBe(200);
    }
    await shows("millrace_dequeue_latency_seconds_count", { queue }, is(2));
    await shows("millrace_job_processing_duration_seconds_count", { queue, type: "item" }, is(2));
    await shows("millrace_job_failures_total", { queue, class: "non_retryable" }, is(1));
    await shows("millrace_dead_letters_total", { queue }, is(1));
    const waiting = call("GET", `${next}&wait_seconds=30`);
    await shows("millrace_robots_waiting", {}, is(1));
    await call("POST", "/api/queue-items/add", { queue_name: queue });
    expect((await waiting).status).toBe(200);
    await shows("millrace_robots_waiting", {}, is(0));
    await shows("millrace_robot_polls_total", {}, some);
    await shows("millrace_http_request_duration_seconds_count", { route: "/api/queues" }, some);
  });
});

describe("of what keeps it going", () => {
  test("tell of breakers, the leader, triggers and webhooks", async () => {
    const receiver = await Receiver.start();
    const { secret } = await millrace.webhooks.create({ url: receiver.url });
    receiver.secrets.push(secret);
    await millrace.notifications.start();
    const guard = millrace.breaker("payments");
    const fails = () => guard.run(() => Promise.reject(new Error("down"))).catch(() => {});
    await shows("millrace_leader_in_office", {}, is(0));
    await until("it opens", async () => {
      await fails();
      return (await scrape()).value("millrace_breaker_openings_total", { platform: "payments" });
    });
    await shows("millrace_breaker_state", { platform: "payments" }, is(2));
    await millrace.breakers.reset("payments", "repaired");
    await shows("millrace_breaker_state", { platform: "payments" }, is(0));
    const manager = await millrace.manage();
    await shows("millrace_leader", {}, is(1));
    await shows("millrace_leader_term", {}, some);
    await shows("millrace_leader_elections_total", {}, is(1));
    await shows("millrace_webhook_deliveries_total", { outcome: "delivered" }, some);
    const job = defineJob({ type: "tick", queue: newQueue() });
    const { id } = await millrace.triggers.create({
      ...{ name: job.queue, type: "TIME", cron: "* * * * * *", job },
    });
    await shows("millrace_trigger_jobs_total", {}, some);
    await millrace.triggers.disable(id);
    await shows("millrace_jobs_lapsed_total", {}, some);
    await instances.query("alter table millrace.scheduled_job rename to away");
    try {
      await shows("millrace_scheduler_push_failures_total", {}, some);
    } finally {
      await instances.query("alter table millrace.away rename to scheduled_job");
    }
    await shows("millrace_service_failures_total", { service: "scheduler" }, some);
    await manager.stop();
    await shows("millrace_leader", {}, is(0));
    await receiver.close();
  });

  test("tell of Redis, and of connections that break", async () => {
    const job = defineJob({ type: "hinted", queue: newQueue() });
    await shows("millrace_redis_health", { redis: "redis" }, is(1));
    await shows("millrace_redis_memory_bytes", { redis: "redis" }, some);
    await shows("millrace_dispatch_mode", { mode: "brokered" }, is(1));
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    await until("Redis refuses a hint", async () => {
      await millrace.enqueue(job, 1);
      return ((await scrape()).value("millrace_hint_failures_total") ?? 0) > 0;
    });
    await redis.kill();
    await shows("millrace_redis_health", { redis: "redis" }, is(0));
    await shows("millrace_dispatch_mode", { mode: "direct" }, is(1));
    await shows("millrace_dispatch_fallbacks_total", { redis: "redis" }, some);
    expect((await scrape()).value("millrace_redis_memory_bytes")).toBeUndefined();
    await redis.start();
    await shows("millrace_redis_health", { redis: "redis" }, is(1));
    const others =
      "pid <> pg_backend_pid() and datname = current_database() and application_name like '%producer%'";
    await instances.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`);
    await shows("millrace_connections_lost_total", { server: "postgres" }, some);
  });

  test("answer while PostgreSQL is silent, with what the process knows and millrace_up 0", async () => {
    const client = new pg.Client({ connectionString: instances.url });
    await client.connect();
    await client.query("begin; lock table millrace.queue in access exclusive mode");
    const held = Promise.allSettled(Array.from({ length: 8 }, () => millrace.queues()));
    try {
      await shows("millrace_up", {}, is(0));
      const silent = await scrape();
      expect(silent.value("millrace_pool_waiting")).toBeGreaterThan(0);
      expect(silent.value("millrace_pool_connections", { state: "busy" })).toBe(
        silent.value("millrace_pool_size"),
      );
      expect(silent.value("millrace_jobs_enqueued_total")).toBeGreaterThan(0);
      expect(silent.value("millrace_queue_depth")).toBeUndefined();
    } finally {
      await client.query("rollback");
      await client.end();
    }
    await held;
    await shows("millrace_up", {}, is(1));
    await shows("millrace_pool_waiting", {}, is(0));
  });
});

describe("all of them", () => {
  const guide = readFileSync(
    join(import.meta.dirname, "../../docs/guides/observability.md"),
    "utf8",
  );
  const listed = [...guide.matchAll(/^\| `(millrace_\w+)`/gm)].map(([, name]) => name ?? "");

  test("are read alike by a parser that is not ours, histograms too", async () => {
    const text = String((await call("GET", "/metrics")).body);
    expect(text.match(/_bucket\{/g)?.length).toBeGreaterThan(100);
    expectBothReadersToAgree(text);
  });

  test("have moved, and are what the guide lists", async () => {
    const after = await scrape();
    expect(after.names).toEqual([...listed].sort());
    const still = after.names.filter(
      (name) => after.fingerprint(name) === before.fingerprint(name),
    );
    // These did move, and came back.
    const moved = [
      "millrace_up",
      "millrace_leader",
      "millrace_robots_waiting",
      "millrace_pool_waiting",
    ];
    const cameBack = [
      ...moved,
      "millrace_leader_in_office",
      "millrace_dispatch_mode",
      "millrace_redis_health",
    ];
    const constant = ["millrace_pool_size"];
    expect(
      still.filter((name) => ![...cameBack, ...constant, "millrace_workers"].includes(name)),
    ).toEqual([]);
  });
});
