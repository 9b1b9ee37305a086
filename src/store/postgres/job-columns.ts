// New jobs as parallel arrays in text form, ready for `unnest`.

import { areAlike } from "../alike.ts";
import type { NewJob } from "../store.ts";
import { arrayText, sparseArrayText } from "./statement.ts";

/** The parameters $3 … $17 of every statement that inserts jobs, in the order of `newJobRows`. */
export function newJobParameters(jobs: readonly NewJob[]): (string | null)[] {
  return [
    arrayText(jobs.map((job) => job.id)),
    arrayText(jobs.map((job) => job.queueId)),
    arrayText(jobs.map((job) => job.weight)),
    arrayText(jobs.map((job) => job.maxAttempts)),
    arrayText(jobs.map((job) => job.type)),
    arrayText(jobs.map((job) => job.tenant)),
    jobs.map((job) => oneLine(job.payload)).join("\n"),
    sparseArrayText(jobs.map((job) => job.expiresInMs)),
    sparseArrayText(jobs.map((job) => job.maxRuntimeMs)),
    sparseArrayText(jobs.map((job) => job.correlationId)),
    sparseArrayText(jobs.map((job) => job.key)),
    sparseArrayText(jobs.map((job) => job.reference)),
    sparseArrayText(jobs.map((job) => (job.meta === undefined ? null : JSON.stringify(job.meta)))),
  ];
}

/** Most jobs of controlled queues stand where those of plain ones do. */
export const hasOwnPlace = ({ tenantSlot = 0, lane = 0 }: NewJob): boolean =>
  tenantSlot !== 0 || lane !== 0;

/** Counts for its tenant. */
export const isCounted = ({ meta }: NewJob): boolean => meta?.counted === true;

export const laneParameters = (jobs: readonly NewJob[]): [string, string] => [
  arrayText(jobs.map((job) => job.tenantSlot ?? 0)),
  arrayText(jobs.map((job) => job.lane ?? 0)),
];

export function labelParameters(jobs: readonly NewJob[]): [string, string, string] {
  const rows = jobs.flatMap(({ id, labels = [] }) => labels.map((label) => ({ id, ...label })));
  return [
    arrayText(rows.map(({ id }) => id)),
    arrayText(rows.map(({ name }) => name)),
    arrayText(rows.map(({ value }) => value)),
  ];
}

/** What $3 … $9 are when the jobs differ in id and payload only; null when they differ in more. */
export function alikeParameters(jobs: readonly NewJob[]): string[] | null {
  const [first] = jobs;
  if (first === undefined || !areAlike(jobs)) return null;
  const { queueId, weight, maxAttempts, type, tenant } = first;
  let ids = "{";
  let lines = "";
  for (const job of jobs) {
    if (job !== first) {
      ids += ",";
      lines += "\n";
    }
    ids += job.id;
    lines += oneLine(job.payload);
  }
  const said = [String(queueId), String(weight), String(maxAttempts), type, tenant];
  return [`${ids}}`, ...said, lines];
}

/** Payloads travel as lines: splitting is cheaper than parsing twice, and compact JSON has no line break. */
export const oneLine = (json: string): string =>
  json.includes("\n") ? JSON.stringify(JSON.parse(json)) : json;

export const newJobRows = `rows from (
    unnest($3::text::uuid[]), unnest($4::text::int[]), unnest($5::text::smallint[]),
    unnest($6::text::smallint[]), unnest($7::text::text[]), unnest($8::text::text[]),
    string_to_table($9::text, E'\\n'), unnest($10::text::bigint[]), unnest($11::text::int[]),
    unnest($12::text::text[]), unnest($13::text::text[]), unnest($14::text::text[]),
    unnest($15::text::json[])`;

export const newJobNames = `id, queue_id, weight, max_attempts, type, tenant, payload, expires_in_ms,
    max_runtime_ms, correlation_id, idempotency_key, reference, meta`;
