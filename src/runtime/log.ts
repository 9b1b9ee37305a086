// The one file that turns events into log lines. Payloads never appear in them.

import { pino } from "pino";
import type { EventMap, EventName, Events } from "./events.ts";

export interface JobLog {
  debug(fields: object, message?: string): void;
  debug(message: string): void;
  info(fields: object, message?: string): void;
  info(message: string): void;
  warn(fields: object, message?: string): void;
  warn(message: string): void;
  error(fields: object, message?: string): void;
  error(message: string): void;
}

export interface Log extends JobLog {
  child(fields: object): Log;
}

export function createLog(level: string, to: "stdout" | "stderr" = "stdout"): Log {
  const options = {
    name: "millrace",
    level,
    redact: { paths: ["payload", "*.payload"], remove: true },
  };
  return to === "stdout" ? pino(options) : pino(options, pino.destination(2));
}

type Level = "debug" | "info" | "warn" | "error";

const levels: Record<EventName, Level> = {
  "millrace.started": "info",
  "millrace.stopped": "info",
  "migration.applied": "debug",
  "job.enqueued": "debug",
  "job.payload_large": "warn",
  "enqueue.accepted": "debug",
  "enqueue.refused": "debug",
  "job.started": "debug",
  "job.settled": "debug",
  "job.settle_refused": "warn",
  "job.settle_repeated": "info",
  "job.aborted": "info",
  "job.lapsed": "warn",
  "robot.leased": "debug",
  "robot.settled": "debug",
  "worker.started": "info",
  "worker.stopped": "info",
  "lease.opened": "debug",
  "lease.lost": "warn",
  "claim.replayed": "info",
  "claim.released": "info",
  "offer.made": "debug",
  "offer.withdrawn": "debug",
  "handover.made": "debug",
  "handover.received": "debug",
  "reclaim.waited": "info",
  "jobs.promoted": "debug",
  "history.pruned": "info",
  "leader.elected": "info",
  "leader.lost": "warn",
  "flush.resolved": "info",
  "queue.deep": "warn",
  "tenant.deep": "warn",
  "dispatch.brokered": "info",
  "dispatch.direct": "warn",
  "hints.refused": "debug",
  "window.refilled": "debug",
  "queue.chosen": "info",
  "queue.degraded": "warn",
  "queue.fell_back": "warn",
  "queue.recovered": "info",
  "item.failed": "info",
  "item.buried": "error",
  "notification.dispatched": "info",
  "webhook.delivered": "debug",
  "webhook.delivery_failed": "warn",
  "webhook.failing": "error",
  "webhook.recovered": "info",
  "trigger.fired": "debug",
  "trigger.missed": "warn",
  "trigger.failed": "warn",
  "trigger.items_settled": "debug",
  "http.answered": "debug",
  "http.failed": "error",
  "breaker.opened": "warn",
  "breaker.half_opened": "info",
  "breaker.closed": "info",
  "connection.lost": "warn",
  "connection.restored": "info",
  "service.failed": "error",
};

const order: readonly string[] = ["debug", "info", "warn", "error", "fatal", "silent"];

/** Subscribes only to what the level shows, so that silent events cost nothing. */
export function logEvents(events: Events, log: Log, level: string): void {
  for (const [name, of] of Object.entries(levels) as [EventName, Level][]) {
    if (!shows(level, of)) continue;
    events.on(name, (event: EventMap[EventName]) => {
      const at = isExpected(event) ? "info" : of;
      if (shows(level, at)) log[at](fieldsOf(name, event), name);
    });
  }
  if (!events.wants("job.settled") && level !== "silent" && level !== "fatal") {
    events.on("job.settled", (event) => {
      if (event.outcome.kind === "dead") log.error(fieldsOf("job.settled", event), "job.dead");
    });
  }
}

const shows = (level: string, of: Level): boolean =>
  level === "trace" || order.indexOf(of) >= order.indexOf(level);

/** A leader that was told to stop loses nothing that anybody must look after. */
const isExpected = (event: EventMap[EventName]): boolean =>
  "reason" in event && event.reason === "resigned";

function fieldsOf(event: EventName, given: EventMap[EventName]): object {
  const fields: Record<string, unknown> = { ...given };
  // "name" is that of the program: a line says it once, and a trigger's own is under "trigger".
  if ("name" in fields) {
    const [what = "subject"] = event.split(".");
    fields[what] = fields.name;
    delete fields.name;
  }
  if ("error" in fields) fields.err = plainError(fields.error);
  delete fields.error;
  const { outcome } = fields;
  if (typeof outcome === "object" && outcome !== null && "kind" in outcome) {
    fields.outcome = outcome.kind;
    if ("error" in outcome) fields.error = outcome.error;
  }
  return fields;
}

/** Drivers hang their connections on their errors; a log line wants none of that. */
function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack } = error;
  const code = "code" in error ? { code: error.code } : {};
  return { type: name, message, ...code, stack };
}
