// The statement of a flush follows the shape of its jobs: what is the same for all of them is said once, and
// only what differs comes in rows. Most flushes have jobs that differ in id and payload alone; those of keys
// and tenants differ in one or two columns more.

import { areLong } from "../long-payloads.ts";
import type { NewJob } from "../store.ts";
import {
  type Column,
  columns,
  columnsOf,
  common,
  firstValues,
  hasRare,
  namesOf,
  parameter,
  queueColumn,
  type ShapedFlush,
  textOf,
  valuesOf,
} from "./flush-columns.ts";
import { countAlike, countEnqueued, type Flush, fence } from "./flush-parts.ts";
import { isCounted } from "./job-columns.ts";
import { arrayText, type Statement, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

const everything = (1 << columns.length) - 1;
/** Every connection prepares each shape it meets: whoever enqueues all sorts of things gets the general one. */
const mostShapes = 24;

export interface ShapeOptions {
  /** Places are told only to who asks: they cost a little. */
  readonly placing: "silent" | "told";
  readonly payloadsApart: boolean;
}

interface Shape {
  /** One job is no list: what makes rows of lists costs as much as all the rest. */
  readonly single: boolean;
  /** A bit for each column that is not the same for all. */
  readonly differs: number;
  /** Is there anything beside what every job has? */
  readonly rare: boolean;
  readonly placing: ShapeOptions["placing"];
  readonly counted: boolean;
  /** Do the payloads lie apart? */
  readonly long: boolean;
}

const known = new Map<string, Statement>();

const nameOf = ({ single, differs, rare, placing, counted, long }: Shape) =>
  `flush_${single ? "one" : differs.toString(36)}${rare ? "_rare" : ""}${placing === "told" ? "_placed" : ""}${counted ? "_counted" : ""}${long ? "_long" : ""}`;

function statementOf(shape: Shape): Statement {
  const name = nameOf(shape);
  const found = known.get(name) ?? statement(name, sqlOf(shape));
  known.set(name, found);
  return found;
}

const payloadLines = "string_to_table($7::text, E'\\n')";
const tenantColumn = 4;

// Taken one by one out of their lists, without being written down in between.
function payloadsApart({ single, differs }: Shape): string {
  const tenant = `${parameter(tenantColumn)}::text`;
  const isOwn = (differs & (1 << tenantColumn)) !== 0;
  const values = single
    ? `$6::uuid, ${tenant}, $7::text`
    : `unnest($6::uuid[]), ${isOwn ? `unnest(${tenant}[])` : tenant}, unnest($7::text[])`;
  return `
  apart as (
    insert into millrace.long_payload (job_id, tenant, payload) select ${values} from fence
  ),`;
}

function sqlOf(shape: Shape): string {
  const { single, differs, placing, counted, long } = shape;
  const stored = columnsOf(shape);
  const isOwn = (i: number) => (differs & (1 << i)) !== 0;
  const own = stored.map((column, i) => ({ ...column, i })).filter(({ i }) => isOwn(i));
  const rows = own.map(({ type, i }) =>
    // A list of JSON texts comes in lines, which are split faster than an array is parsed.
    type === "json"
      ? `string_to_table(${parameter(i)}::text, E'\\n', '')`
      : `unnest(${parameter(i)}::${type}[])`,
  );
  const returning = [
    ...(placing === "told" ? ["ctid as tid", "seq"] : []),
    ...(counted ? ["tenant", "queue_id", "meta"] : []),
  ];
  const lists = ["unnest($6::uuid[])", ...(long ? [] : [payloadLines]), ...rows];
  const names = ["id", ...(long ? [] : ["payload"]), ...own.map(({ name }) => name), "place"];
  const source = single
    ? "(values ($6::uuid, $7::text, 1)) r (id, payload, place)"
    : `rows from (${lists.join(", ")}) with ordinality r (${names.join(", ")})`;
  const places = "(select string_agg(tid::text, ';' order by seq) from inserted), base::float8";
  const queueId = `${parameter(queueColumn)}::int`;
  return `with ${fence},${long ? payloadsApart(shape) : ""}
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, payload, ${namesOf(stored)})
    select r.id, base + r.place, now(), now(), ${long ? "null" : "r.payload::json"}, ${valuesOf(stored, differs)}
    from fence, ${source}
    ${returning.length > 0 ? `returning ${returning.join(", ")}` : ""}
  ),${counted ? `\n  tenants_counted as (${countTenants("inserted", "+", "$2::text::uuid")}),` : ""}
  counted as (${isOwn(queueColumn) ? countEnqueued(`unnest(${queueId}[])`) : countAlike(queueId, "$5::bigint")})
  select case when $4::text is not null and $5::bigint > 0 then pg_notify($3::text, $4::text) end,
    ${placing === "told" ? places : "null, null"}
  from fence`;
}

function differences(jobs: readonly NewJob[]): Pick<Shape, "differs" | "rare"> {
  const [first] = jobs;
  if (first === undefined) return { differs: 0, rare: false };
  const values = columns.map(({ of }) => of(first));
  let differs = 0;
  for (const job of jobs) {
    if (job === first) continue;
    for (let i = 0; i < columns.length; i++)
      if (columns[i]?.of(job) !== values[i]) differs |= 1 << i;
  }
  return { differs, rare: hasRare(first) || differs >> common !== 0 };
}

function sameFor(jobs: readonly NewJob[], column: Column): string | null {
  const [first] = jobs;
  return first === undefined ? null : textOf(column.of(first));
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

export function shapedFlush(flush: Flush, options: ShapeOptions): ShapedFlush {
  const { jobs } = flush;
  const counted = jobs.some(isCounted);
  const long = options.payloadsApart && areLong(jobs);
  const { placing } = options;
  const wanted = { single: jobs.length === 1, ...differences(jobs), placing, counted, long };
  const general = !wanted.single && known.size >= mostShapes && !known.has(nameOf(wanted));
  const shape = general ? { ...wanted, differs: everything, rare: true } : wanted;
  const values = columnsOf(shape).map((column, i) =>
    (shape.differs & (1 << i)) === 0 ? sameFor(jobs, column) : eachOf(jobs, column),
  );
  return { source: statementOf(shape), values: [...firstValues(flush, long), ...values] };
}
