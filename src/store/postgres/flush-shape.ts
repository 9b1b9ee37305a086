// The statement of a flush follows the shape of its jobs: what is the same for all of them is said once, and
// only what differs comes in rows. Most flushes have jobs that differ in id and payload alone; those of keys
// and tenants differ in one or two columns more.

import type { NewJob } from "../store.ts";
import { countAlike, countEnqueued, type Flush, fence } from "./flush-parts.ts";
import { isCounted, oneLine } from "./job-columns.ts";
import { arrayText, type Statement, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

interface Column {
  readonly name: string;
  readonly type: string;
  readonly of: (job: NewJob) => string | number | object | null | undefined;
  /** What is inserted, where that is not the value itself. */
  readonly stored?: (value: string) => string;
}

/** Those after the first seven parameters, in this order. */
const columns: readonly Column[] = [
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
const queueColumn = 0;
const everything = (1 << columns.length) - 1;
/** Every connection prepares each shape it meets: whoever enqueues all sorts of things gets the general one. */
const mostShapes = 24;

/** Places are told only to who asks: they cost a little. */
export type Placing = "silent" | "told";

interface Shape {
  /** A bit for each column that is not the same for all. */
  readonly differs: number;
  readonly placing: Placing;
  readonly counted: boolean;
}

const known = new Map<string, Statement>();

const nameOf = ({ differs, placing, counted }: Shape) =>
  `flush_${differs.toString(36)}${placing === "told" ? "_placed" : ""}${counted ? "_counted" : ""}`;

function statementOf(shape: Shape): Statement {
  const name = nameOf(shape);
  const found = known.get(name) ?? statement(name, textOf(shape));
  known.set(name, found);
  return found;
}

function textOf({ differs, placing, counted }: Shape): string {
  const parameter = (i: number) => `$${firstColumn + i}`;
  const isOwn = (i: number) => (differs & (1 << i)) !== 0;
  const own = columns.map((column, i) => ({ ...column, i })).filter(({ i }) => isOwn(i));
  const rows = own.map(({ type, i }) =>
    // A list of JSON texts comes in lines, which are split faster than an array is parsed.
    type === "json"
      ? `string_to_table(${parameter(i)}::text, E'\\n', '')`
      : `unnest(${parameter(i)}::${type}[])`,
  );
  const values = columns.map(({ name, type, stored = (value) => value }, i) =>
    stored(isOwn(i) ? `r.${name}` : `${parameter(i)}::${type}`),
  );
  const returning = [
    ...(placing === "told" ? ["ctid as tid", "seq"] : []),
    ...(counted ? ["tenant", "queue_id", "meta"] : []),
  ];
  const places = "(select string_agg(tid::text, ';' order by seq) from inserted), base::float8";
  const queueId = `${parameter(queueColumn)}::int`;
  return `with ${fence},
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, payload, ${columns.map(({ name }) => name).join(", ")})
    select r.id, base + r.place, now(), now(), r.payload::json, ${values.join(", ")}
    from fence, rows from (unnest($6::uuid[]), ${["string_to_table($7::text, E'\\n')", ...rows].join(", ")})
      with ordinality r (${["id", "payload", ...own.map(({ name }) => name), "place"].join(", ")})
    ${returning.length > 0 ? `returning ${returning.join(", ")}` : ""}
  ),${counted ? `\n  tenants_counted as (${countTenants("inserted", "+", "$2::text::uuid")}),` : ""}
  counted as (${isOwn(queueColumn) ? countEnqueued(`unnest(${queueId}[])`) : countAlike(queueId, "$5::bigint")})
  select case when $4::text is not null and $5::bigint > 0 then pg_notify($3::text, $4::text) end,
    ${placing === "told" ? places : "null, null"}
  from fence`;
}

function differences(jobs: readonly NewJob[]): number {
  const [first] = jobs;
  if (first === undefined) return 0;
  const values = columns.map(({ of }) => of(first));
  let differs = 0;
  for (const job of jobs)
    for (let i = 0; i < columns.length; i++)
      if (columns[i]?.of(job) !== values[i]) differs |= 1 << i;
  return differs;
}

function sameFor(jobs: readonly NewJob[], column: Column): string | null {
  const [first] = jobs;
  const value = first === undefined ? undefined : column.of(first);
  if (value === undefined || value === null) return null;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function eachOf(jobs: readonly NewJob[], { type, of }: Column): string {
  if (type !== "json") return arrayText(jobs.map((job) => of(job) as string | number | undefined));
  let lines = "";
  for (const job of jobs) {
    const value = of(job);
    if (job !== jobs[0]) lines += "\n";
    if (value !== undefined) lines += JSON.stringify(value);
  }
  return lines;
}

function idsAndPayloads(jobs: readonly NewJob[]): [string, string] {
  let ids = "{";
  let lines = "";
  for (const job of jobs) {
    if (job !== jobs[0]) {
      ids += ",";
      lines += "\n";
    }
    ids += job.id;
    lines += oneLine(job.payload);
  }
  return [`${ids}}`, lines];
}

export function shapedFlush(
  { flushNo, producer, channel, notice, jobs }: Flush,
  placing: Placing,
): { readonly source: Statement; readonly values: (string | null)[] } {
  const counted = jobs.some(isCounted);
  const wanted = { differs: differences(jobs), placing, counted };
  const general = known.size >= mostShapes && !known.has(nameOf(wanted));
  const shape = general ? { ...wanted, differs: everything } : wanted;
  const values = columns.map((column, i) =>
    (shape.differs & (1 << i)) === 0 ? sameFor(jobs, column) : eachOf(jobs, column),
  );
  const first = [String(flushNo), producer, channel, notice, String(jobs.length)];
  return { source: statementOf(shape), values: [...first, ...idsAndPayloads(jobs), ...values] };
}
