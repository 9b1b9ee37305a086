// The core says what happens through these events; logs and metrics are their subscribers.

import type { ErrorClass } from "../domain/error-class.ts";
import type { ClaimedJob } from "../domain/job.ts";
import type { Outcome } from "../domain/outcome.ts";
import type { PayloadProblem } from "../domain/payload-rules.ts";

type RunningJob = Pick<
  ClaimedJob,
  "id" | "type" | "queueId" | "tenant" | "attempt" | "correlationId"
>;

interface Enqueued {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly correlationId: string;
}

/** What a robot holds or held, over HTTP. */
interface RobotItem {
  readonly id: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly attempt: number;
  readonly robot: string | null;
}

/** Neither the URL nor the secret: both open doors. */
interface WebhookAttempt {
  webhook: string;
  delivery: string;
  notification: string;
  kind: string;
  attempt: number;
}

interface TriggerName {
  readonly id: string;
  readonly name: string;
  readonly tenant: string;
}

interface BreakerChange {
  readonly breaker: string;
  readonly cause: "failures" | "probe" | "manual" | null;
  readonly reason: string | null;
}

export interface EventMap {
  "millrace.started": {
    schema: string;
    embedded: boolean;
    serverVersion: string;
    /** How many migrations this start has applied. */
    migrations: number;
  };
  "millrace.stopped": Record<string, never>;
  "migration.applied": { version: number; name: string };
  "job.enqueued": Enqueued & { existing: boolean };
  "job.payload_large": { type: string; sizeBytes: number; problems: readonly PayloadProblem[] };
  /** One for each call and queue; `job.enqueued` is the same for each job. */
  "enqueue.accepted": { queueId: number; jobs: number; repeats: number };
  "enqueue.refused": { type: string; queue: string; code: string };
  /** `waitedMs`: since it was ready, by the database's clock; null: not known. */
  "job.started": RunningJob & { waitedMs: number | null };
  "job.settled": RunningJob & { outcome: Outcome; durationMs: number };
  "job.settle_refused": RunningJob & { outcome: Outcome["kind"] };
  "job.settle_repeated": RunningJob & { outcome: Outcome["kind"] };
  "job.aborted": RunningJob & {
    reason: "cancelled" | "lease_lost" | "not_stored" | "stopping" | "max_runtime";
  };
  "job.lapsed": {
    id: string;
    type: string;
    correlationId: string;
    outcome: Outcome["kind"];
    crashCount: number;
  };
  "robot.leased": RobotItem & { waitedMs: number };
  "robot.settled": RobotItem & {
    outcome: Outcome["kind"];
    class: ErrorClass | undefined;
    durationMs: number;
  };
  "worker.started": { worker: string; queues: readonly string[]; types: readonly string[] };
  "worker.stopped": { worker: string; released: number };
  "lease.opened": { worker: string; lease: string };
  "lease.lost": { worker: string; lease: string; jobs: number };
  "claim.replayed": { claim: string; jobs: number };
  "claim.released": { worker: string; claims: number };
  /** A worker says that it takes jobs straight from whoever stores them; and that it does no more. */
  "offer.made": { worker: string; lease: string };
  "offer.withdrawn": { worker: string; lease: string };
  /** By whoever stored the jobs; the id is the first one's. */
  "handover.made": { id: string; jobs: number; queueId: number; lease: string };
  /** By the worker; without room for it, it is given back at once. No jobs: there was nothing under that claim. */
  "handover.received": { worker: string; claim: string; jobs: number; kept: boolean };
  "reclaim.waited": {
    reason: "server_restarted" | "leader_changed" | "mass_lapse";
    leases: number;
  };
  "jobs.promoted": { jobs: number; latenessMs: readonly number[] };
  "history.pruned": {
    partitions: number;
    deadLetters: number;
    timelines: number;
    auditEntries: number;
  };
  "leader.elected": { term: number };
  "leader.lost": { term: number; reason: "superseded" | "not_renewed" | "resigned" };
  "flush.resolved": { committed: boolean; jobs: number };
  "queue.deep": { queue: string; depth: number; warnDepth: number };
  "tenant.deep": { tenant: string; depth: number; warnDepth: number };
  "queue.chosen": { queue: string; reason: string };
  "queue.degraded": { queue: string; reason: string; error: unknown };
  "queue.fell_back": { queue: string; error: unknown };
  "queue.recovered": { queue: string; drained: number };
  "item.failed": { id: string; attempt: number; class: ErrorClass; delayMs: number };
  "item.buried": { id: string; attempt: number; class: ErrorClass; message: string };
  "dispatch.brokered": { redis: string };
  "dispatch.direct": { redis: string; error: unknown };
  "hints.refused": { hints: number };
  "window.refilled": { queueId: number; hints: number };
  "notification.dispatched": { id: string; kind: string; deliveries: number };
  "webhook.delivered": WebhookAttempt & { status: number };
  "webhook.delivery_failed": WebhookAttempt & { reason: string; status: number | null };
  "webhook.failing": { webhook: string; failures: number };
  "webhook.recovered": { webhook: string };
  "trigger.fired": TriggerName & { jobIds: readonly string[]; items: number };
  "trigger.missed": TriggerName & { from: Date };
  "trigger.failed": TriggerName & { failures: number; error: unknown; retryAt: Date | null };
  "trigger.items_settled": { jobId: string; items: number };
  "http.answered": {
    request: string;
    method: string;
    route: string;
    status: number;
    durationMs: number;
    key: string | null;
    tenant: string | null;
  };
  "http.failed": { request: string; route: string; code: string; error: unknown };
  "breaker.opened": BreakerChange & { failures: number; retryAfterMs: number | null };
  "breaker.half_opened": BreakerChange;
  "breaker.closed": BreakerChange;
  "connection.lost": { connection: string; error: unknown };
  "connection.restored": { connection: string };
  "service.failed": { service: string; error: unknown };
}

export type EventName = keyof EventMap;
export type Listener<N extends EventName> = (event: EventMap[N]) => void;
type AnyListener = (event: never) => void;

export class Events {
  readonly #listeners = new Map<EventName, Set<AnyListener>>();

  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    const set = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, set);
    set.add(listener);
    return () => set.delete(listener);
  }

  /** True when somebody listens: lets hot paths skip building an event nobody wants. */
  wants(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<N extends EventName>(name: N, event: EventMap[N]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as Listener<N>)(event);
      } catch (error) {
        // A listener's fault must not undo what it was told of.
        if (name !== "service.failed")
          this.emit("service.failed", { service: `listener of ${name}`, error });
      }
    }
  }

  /** Resolves with the next event of this name that fits. */
  once<N extends EventName>(name: N, fits: (event: EventMap[N]) => boolean = () => true) {
    return new Promise<EventMap[N]>((resolve) => {
      const off = this.on(name, (event) => {
        if (!fits(event)) return;
        off();
        resolve(event);
      });
    });
  }
}
