// The one file that turns events into metrics. Labels are names out of configuration (queues, types,
// routes, codes); ids, tenants of jobs and texts are in none.

import type { ErrorClass } from "../domain/error-class.ts";
import type { EventMap, EventName, Events, Listener } from "./events.ts";
import type { MetricsRegistry } from "./metrics.ts";

type On = <N extends EventName>(name: N, listener: Listener<N>) => void;

/** A queue's tenant ('' for shared ones) and name, as labels say them. */
export type QueueLabels = (queueId: number) => readonly [tenant: string, queue: string];

/** Answers what ends the counting. */
export function countEvents(
  events: Events,
  registry: MetricsRegistry,
  queueLabels: QueueLabels,
): () => void {
  const ends: (() => void)[] = [];
  const on: On = (name, listener) => void ends.push(events.on(name, listener));
  countIntake(on, registry, queueLabels);
  countRuns(on, registry, queueLabels);
  countUpkeep(on, registry);
  countServers(on, registry);
  countHttp(on, registry);
  return () => {
    for (const end of ends) end();
  };
}

function countIntake(on: On, registry: MetricsRegistry, queueLabels: QueueLabels): void {
  const enqueued = registry.counter(
    "millrace_jobs_enqueued_total",
    "Jobs that this process has stored.",
    ["tenant", "queue"],
  );
  const repeated = registry.counter(
    "millrace_enqueue_repeats_total",
    "Enqueues that had been made before and were answered with the old job.",
    ["tenant", "queue"],
  );
  const refused = registry.counter(
    "millrace_enqueue_refusals_total",
    "Enqueues that were refused, by code.",
    ["code"],
  );
  on("enqueue.accepted", ({ queueId, jobs, repeats }) => {
    const labels = queueLabels(queueId);
    if (jobs > 0) enqueued.add(labels, jobs);
    if (repeats > 0) repeated.add(labels, repeats);
  });
  on("enqueue.refused", ({ code }) => refused.add([code]));
}

function countRuns(on: On, registry: MetricsRegistry, queueLabels: QueueLabels): void {
  const latency = registry.histogram(
    "millrace_dequeue_latency_seconds",
    "From ready to started, by the database's clock.",
    ["tenant", "queue"],
  );
  const duration = registry.histogram(
    "millrace_job_processing_duration_seconds",
    "How long runs took, however they ended.",
    ["tenant", "queue", "type"],
  );
  const runs = registry.counter("millrace_job_runs_total", "Runs that have ended, by outcome.", [
    "tenant",
    "queue",
    "type",
    "outcome",
  ]);
  const failures = registry.counter(
    "millrace_job_failures_total",
    "Runs that failed, by error class; those that are tried again and those that are not.",
    ["tenant", "queue", "type", "class"],
  );
  const retries = registry.counter("millrace_job_retries_total", "Failures that are tried again.", [
    "tenant",
    "queue",
    "type",
  ]);
  const dead = registry.counter(
    "millrace_dead_letters_total",
    "Jobs that have become dead letters.",
    ["tenant", "queue", "type"],
  );
  const refused = registry.counter(
    "millrace_settles_refused_total",
    "Ends of runs that were refused, since the token had been superseded.",
  );
  const lapsed = registry.counter(
    "millrace_jobs_lapsed_total",
    "Jobs taken back from processes that died or stalled, by outcome.",
    ["outcome"],
  );
  const settled = (run: { queueId: number; type: string }, end: End): void => {
    const { type } = run;
    const about = [...queueLabels(run.queueId), type];
    runs.add([...about, end.kind]);
    if (end.kind !== "released") duration.observe(about, end.durationMs / 1_000);
    if (end.class !== undefined) failures.add([...about, end.class]);
    if (end.kind === "retried") retries.add(about);
    if (end.kind === "dead") dead.add(about);
  };
  on("job.started", ({ queueId, waitedMs }) => {
    if (waitedMs !== null) latency.observe(queueLabels(queueId), waitedMs / 1_000);
  });
  on("job.settled", (event) => settled(event, endOf(event)));
  on("job.settle_refused", () => refused.add([]));
  on("job.lapsed", ({ outcome }) => lapsed.add([outcome]));
  on("robot.leased", ({ queueId, waitedMs }) =>
    latency.observe(queueLabels(queueId), waitedMs / 1_000),
  );
  on("robot.settled", ({ queueId, outcome, class: errorClass, durationMs }) =>
    settled({ queueId, type: "item" }, { kind: outcome, class: errorClass, durationMs }),
  );
}

interface End {
  readonly kind: string;
  readonly class: ErrorClass | undefined;
  readonly durationMs: number;
}

const endOf = ({ outcome, durationMs }: EventMap["job.settled"]): End => ({
  kind: outcome.kind,
  class: "error" in outcome ? outcome.error.class : undefined,
  durationMs,
});

function countUpkeep(on: On, registry: MetricsRegistry): void {
  const scanned = registry.counter(
    "millrace_scheduler_scanned_total",
    "Due jobs that the scheduler of this process has found.",
  );
  const queued = registry.counter(
    "millrace_scheduler_queued_total",
    "Due jobs that it has made ready.",
  );
  const failed = registry.counter(
    "millrace_scheduler_push_failures_total",
    "Rounds of the scheduler that failed; what they had found is found again.",
  );
  const lateness = registry.histogram(
    "millrace_scheduler_lateness_seconds",
    "By how much jobs were late when they became ready.",
  );
  const leading = registry.gauge("millrace_leader", "1 while this process is leader.");
  const elections = registry.counter(
    "millrace_leader_elections_total",
    "How often this process was elected.",
  );
  const fired = registry.counter("millrace_trigger_jobs_total", "Jobs that triggers have made.");
  const troubles = registry.counter(
    "millrace_service_failures_total",
    "Failures of the parts that run in the background; they go on by themselves.",
    ["service"],
  );
  leading.set([], 0);
  on("jobs.promoted", ({ jobs, latenessMs }) => {
    scanned.add([], latenessMs.length);
    queued.add([], jobs);
    for (const ms of latenessMs) lateness.observe([], ms / 1_000);
  });
  on("leader.elected", () => {
    leading.set([], 1);
    elections.add([]);
  });
  on("leader.lost", () => leading.set([], 0));
  on("trigger.fired", ({ jobIds }) => fired.add([], jobIds.length));
  on("service.failed", ({ service }) => {
    troubles.add([service.startsWith("listener of") ? "listener" : service]);
    if (service === "scheduler") failed.add([]);
  });
}

function countServers(on: On, registry: MetricsRegistry): void {
  const lost = registry.counter("millrace_connections_lost_total", "Connections that broke.", [
    "server",
  ]);
  const fallbacks = registry.counter(
    "millrace_dispatch_fallbacks_total",
    "How often dispatch fell back from Redis to PostgreSQL.",
    ["redis"],
  );
  const refused = registry.counter(
    "millrace_hint_failures_total",
    "Hints that Redis did not take; the jobs are found in PostgreSQL.",
  );
  const opened = registry.counter(
    "millrace_breaker_openings_total",
    "How often this process saw the breaker of a platform open.",
    ["platform"],
  );
  const deliveries = registry.counter("millrace_webhook_deliveries_total", "Tries to deliver.", [
    "outcome",
  ]);
  on("connection.lost", ({ connection }) =>
    lost.add([connection.startsWith("redis") ? "redis" : "postgres"]),
  );
  on("dispatch.direct", ({ redis }) => fallbacks.add([redis]));
  on("hints.refused", ({ hints }) => refused.add([], hints));
  on("breaker.opened", ({ breaker }) => opened.add([breaker]));
  on("webhook.delivered", () => deliveries.add(["delivered"]));
  on("webhook.delivery_failed", () => deliveries.add(["failed"]));
}

function countHttp(on: On, registry: MetricsRegistry): void {
  const requests = registry.counter(
    "millrace_http_requests_total",
    "Requests that were answered.",
    ["method", "route", "status"],
  );
  const duration = registry.histogram(
    "millrace_http_request_duration_seconds",
    "How long answers took; robots that wait for items are among them.",
    ["route"],
  );
  on("http.answered", ({ method, route, status, durationMs }) => {
    requests.add([method, route, String(status)]);
    duration.observe([route], durationMs / 1_000);
  });
}
