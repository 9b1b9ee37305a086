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

const head = /^(\d+),(\d+),(-?\d+),(\d+),(\d*),(\d+),(-|\d+);/;
const numbers = /^(\d+),(\d+),(-?\d+),(\d+),\d*,/;

/** "attempt,sequence" of a take, as the scripts have it; a requeued or new item of the id has another. */
export const tokenOf = ({ attempt, sequence }: Pick<QueueItem<unknown>, "attempt" | "sequence">) =>
  `${attempt},${sequence}`;

/** Of a record that nobody can read. */
export function decodeHead(id: string, record: string, taken = 0): QueueItem<undefined> {
  const [, attempts, sequence, weight, enqueuedAt] = numbers.exec(record) ?? [];
  const times = { enqueuedAt: Number(enqueuedAt ?? 0), readyAt: Number(enqueuedAt ?? 0) };
  const take = { sequence: Number(sequence ?? 0), attempt: Number(attempts ?? 0) + taken };
  return { id, job: undefined, priority: "", weight: Number(weight ?? 0), ...times, ...take };
}

/** Attempts as the record says; a take makes one more of them. */
export function decodeRecord<T>(id: string, record: string, taken = 0): QueueItem<T> {
  const parts = head.exec(record);
  if (parts === null) throw new Error("this is no record");
  const [found, attempts, sequence, weight, enqueuedAt, due, label, correlated] = parts;
  const from = found.length;
  const labelEnd = Number(label);
  const jobAt = from + labelEnd + (correlated === "-" ? 0 : Number(correlated));
  const priority = record.slice(from, from + labelEnd);
  const json = record.slice(jobAt);
  const item = {
    id,
    job: (json === "" ? undefined : JSON.parse(json)) as T,
    priority,
    weight: Number(weight),
    enqueuedAt: Number(enqueuedAt),
    readyAt: Number(due === "" ? enqueuedAt : due),
    sequence: Number(sequence),
    attempt: Number(attempts) + taken,
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
