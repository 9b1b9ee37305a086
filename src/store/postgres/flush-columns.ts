// The columns that a flush fills, and the parameters they come in: seven that every flush has, then these.

import type { NewJob } from "../store.ts";
import { List } from "./binary-list.ts";
import type { Flush } from "./flush-parts.ts";
import { oneLine } from "./job-columns.ts";
import { lettersPerPiece, type Sent } from "./run-message.ts";
import type { Statement } from "./statement.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly of: (job: NewJob) => string | number | object | null | undefined;
  /** What is inserted, where that is not the value itself. */
  readonly stored?: (value: string) => string;
}

/** Those after the first seven parameters, in this order. */
export const columns: readonly Column[] = [
  { name: "queue_id", type: "int", of: (job) => job.queueId },
  { name: "weight", type: "smallint", of: (job) => job.weight },
  { name: "max_attempts", type: "smallint", of: (job) => job.maxAttempts },
  { name: "type", type: "text", of: (job) => job.type },
  { name: "tenant", type: "text", of: (job) => job.tenant },
  {
    name: "expires_at",
    type: "bigint",
    of: (job) => job.expiresInMs,
    stored: (ms) => `now() + ${ms} * interval '1 ms'`,
  },
  { name: "max_runtime_ms", type: "int", of: (job) => job.maxRuntimeMs },
  { name: "correlation_id", type: "text", of: (job) => job.correlationId },
  { name: "idempotency_key", type: "text", of: (job) => job.key },
  { name: "reference", type: "text", of: (job) => job.reference },
  { name: "meta", type: "json", of: (job) => job.meta, stored: (meta) => `${meta}::json` },
  { name: "tenant_slot", type: "int", of: (job) => job.tenantSlot ?? 0 },
  { name: "lane", type: "int", of: (job) => job.lane ?? 0 },
];

const firstColumn = 8;
export const queueColumn = 0;
export const runtimeColumn = 6;
/** What every job has. */
export const common = 5;

export const parameter = (i: number, from = firstColumn) => `$${from + i}`;
export const columnsOf = ({ rare }: { readonly rare: boolean }) =>
  rare ? columns : columns.slice(0, common);
export const namesOf = (of: readonly Column[]) => of.map(({ name }) => name).join(", ");

export const valuesOf = (of: readonly Column[], differs: number, from = firstColumn) =>
  of
    .map(({ name, type, stored = (value) => value }, i) =>
      stored((differs & (1 << i)) === 0 ? `${parameter(i, from)}::${type}` : `r.${name}`),
    )
    .join(", ");

/** Has it anything beside that? Spelled out: this is on the way of every pickup, where each function more is dear. */
export const hasRare = (job: NewJob): boolean =>
  job.expiresInMs !== undefined ||
  job.maxRuntimeMs !== undefined ||
  job.correlationId !== undefined ||
  job.key !== undefined ||
  job.reference !== undefined ||
  job.meta !== undefined ||
  (job.tenantSlot ?? 0) !== 0 ||
  (job.lane ?? 0) !== 0;

export function textOf(value: ReturnType<Column["of"]>): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Short payloads come in lines, which are split as soon as a list is read, and written in fewer pieces. */
function payloadLines(jobs: readonly NewJob[]): string[] {
  const pieces: string[] = [];
  let lines = "";
  for (const { payload } of jobs) {
    lines += pieces.length === 0 && lines === "" ? oneLine(payload) : `\n${oneLine(payload)}`;
    if (lines.length < lettersPerPiece) continue;
    pieces.push(lines);
    lines = "";
  }
  pieces.push(lines);
  return pieces;
}

const payloadList = (jobs: readonly NewJob[]): List =>
  new List(
    "text",
    jobs.map(({ payload }) => oneLine(payload)),
  );

/** The parameters $6 and $7. */
export function idsAndPayloads(jobs: readonly NewJob[], long: boolean): [Sent, Sent] {
  const [first, second] = jobs;
  if (first !== undefined && second === undefined) return [first.id, oneLine(first.payload)];
  const ids = new List(
    "uuid",
    jobs.map(({ id }) => id),
  );
  return [ids, long ? payloadList(jobs) : payloadLines(jobs)];
}

/** The columns that are not common. */
export const rareColumns = columns.slice(common);

export const firstValues = (
  { flushNo, producer, channel, notice, jobs }: Flush,
  long: boolean,
): Sent[] => [
  ...[String(flushNo), producer, channel, notice, String(jobs.length)],
  ...idsAndPayloads(jobs, long),
];

export interface ShapedFlush {
  readonly source: Statement;
  readonly values: Sent[];
}
