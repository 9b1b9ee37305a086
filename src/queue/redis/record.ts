// An item as scripts/shared.lua keeps it: "attempts,sequence,weight,enqueued at,ready at or nothing,"
// and then what only this file reads: "length of the label,length of the correlation;", both, and the job.

import type { DeadItem, QueueItem } from "../queue.ts";
import { jsonOf } from "../queue-options.ts";

interface Wrapped<T> {
  readonly job: T;
  readonly priority: string;
  readonly correlationId?: string | undefined;
}

/** The part of a record that the scripts carry along unread. */
export function encodeRest<T>({ job, priority, correlationId }: Wrapped<T>): string {
  const correlated = correlationId === undefined ? "-" : correlationId.length;
  return `${priority.length},${correlated};${priority}${correlationId ?? ""}${jsonOf(job)}`;
}

/** Of a record whose rest nobody can read. */
export function decodeHead(id: string, record: string, taken = 0): QueueItem<undefined> {
  const [attempts, sequence, weight, enqueuedAt] = record.split(",", 4).map(Number);
  const times = { enqueuedAt: enqueuedAt ?? 0, readyAt: enqueuedAt ?? 0 };
  const take = { sequence: sequence ?? 0, attempt: (attempts ?? 0) + taken };
  return { id, job: undefined, priority: "", weight: weight ?? 0, ...times, ...take };
}

/** Attempts as the record says; a take makes one more of them. */
export function decodeRecord<T>(id: string, record: string, taken = 0): QueueItem<T> {
  let from = 0;
  const upTo = (mark: string): string => {
    const end = record.indexOf(mark, from);
    const part = record.slice(from, end);
    from = end + 1;
    return part;
  };
  const attempt = Number(upTo(",")) + taken;
  const sequence = Number(upTo(","));
  const weight = Number(upTo(","));
  const enqueuedAt = Number(upTo(","));
  const due = upTo(",");
  const labelEnd = Number(upTo(","));
  const correlated = upTo(";");
  const jobAt = from + labelEnd + (correlated === "-" ? 0 : Number(correlated));
  const priority = record.slice(from, from + labelEnd);
  const json = record.slice(jobAt);
  const item = {
    id,
    job: (json === "" ? undefined : JSON.parse(json)) as T,
    priority,
    weight,
    enqueuedAt,
    readyAt: due === "" ? enqueuedAt : Number(due),
    sequence,
    attempt,
  };
  if (correlated === "-") return item;
  return { ...item, correlationId: record.slice(from + labelEnd, jobAt) };
}

/** A grave is "time of death,length of the error in bytes;error" and the record. */
export function decodeGrave<T>(id: string, grave: string): DeadItem<T> {
  const [head = "", died = "", length = ""] = /^(\d+),(\d+);/.exec(grave) ?? [];
  const rest = Buffer.from(grave.slice(head.length));
  const error = rest.subarray(0, Number(length)).toString();
  const record = rest.subarray(Number(length)).toString();
  return { ...readable<T>(id, record), diedAt: Number(died), error };
}

function readable<T>(id: string, record: string): QueueItem<T> {
  try {
    return decodeRecord<T>(id, record);
  } catch {
    return decodeHead(id, record) as QueueItem<T>;
  }
}
