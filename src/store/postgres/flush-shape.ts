// The statement of a flush follows the shape of its jobs: what is the same for all of them is said once, and
// only what differs comes in rows. Most flushes have jobs that differ in id and payload alone; those of keys
// and tenants differ in one or two columns more.

import { areLong } from "../long-payloads.ts";
import type { Handover, ImmediateClaim, NewJob } from "../store.ts";
import { clearOf, countAlike, countEnqueued, type Flush, fence } from "./flush-parts.ts";
import { handedText } from "./handed.ts";
import { isCounted, oneLine } from "./job-columns.ts";
import { offerStands } from "./offers.ts";
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
const runtimeColumn = 6;
/** What every job has. */
const common = 5;
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
  const found = known.get(name) ?? statement(name, textOf(shape));
  known.set(name, found);
  return found;
}

const parameter = (i: number) => `$${firstColumn + i}`;
const columnsOf = ({ rare }: Pick<Shape, "rare">) => (rare ? columns : columns.slice(0, common));
const namesOf = (of: readonly Column[]) => of.map(({ name }) => name).join(", ");

const valuesOf = (of: readonly Column[], differs: number) =>
  of
    .map(({ name, type, stored = (value) => value }, i) =>
      stored((differs & (1 << i)) === 0 ? `${parameter(i)}::${type}` : `r.${name}`),
    )
    .join(", ");

const payloadLines = "string_to_table($7::text, E'\\n')";
const tenantColumn = 4;

// Their own list of the same ids: what two readers share would be written down in between.
function payloadsApart({ single, differs }: Shape): string {
  const tenant = `${parameter(tenantColumn)}::text`;
  const isOwn = (differs & (1 << tenantColumn)) !== 0;
  const lists = ["unnest($6::uuid[])", payloadLines, ...(isOwn ? [`unnest(${tenant}[])`] : [])];
  const source = single ? "(values ($6::uuid, $7::text))" : `rows from (${lists.join(", ")})`;
  return `
  apart as (
    insert into millrace.long_payload (job_id, tenant, payload)
    select r.id, ${isOwn ? "r.tenant" : tenant}, r.payload
    from fence, ${source} r (id, payload${isOwn ? ", tenant" : ""})
  ),`;
}

function textOf(shape: Shape): string {
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
  const given = values.slice(common).some((value) => value !== undefined && value !== 0);
  return { differs, rare: given || differs >> common !== 0 };
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

export function idsAndPayloads(jobs: readonly NewJob[]): [string, string] {
  const [first, second] = jobs;
  if (first !== undefined && second === undefined) return [first.id, oneLine(first.payload)];
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

const ways = {
  /** For a worker of this process, which hears of it with the answer. */
  claim: {
    own: 3,
    also: () => "",
    notify: () =>
      "case when not yes and $4::text is not null then pg_notify($3::text, $4::text) end",
  },
  /** For one elsewhere, which is told what it got. */
  hand: {
    own: 8,
    also: ([, leaseId, , offerId, leftMs]: string[]) =>
      ` and ${offerStands(`${leaseId}::uuid`, `${offerId}::uuid`, `${leftMs}::int`)}`,
    notify: ([, , , , , channel, notice, job]: string[]) =>
      `case when yes then pg_notify(${channel}::text,
        ${notice}::text || ' ' || (base + 1) || ' ' || date_part('epoch', now()) || ${job}::text)
      when $4::text is not null then pg_notify($3::text, $4::text) end`,
  },
};

// One job for a worker that waits for it: stored as claimed, unless an older one is ready or the queue rests.
// Every pickup there waits for this, so it says nothing that most jobs do not need.
function flushOneAnd(way: keyof typeof ways, rare: boolean): Statement {
  const stored = columnsOf({ rare });
  const { own, also, notify } = ways[way];
  const parameters = Array.from({ length: own }, (_, n) => parameter(stored.length + n));
  const [claimId, leaseId, afterSeq] = parameters;
  const deadline = rare ? `now() + ${parameter(runtimeColumn)}::int * interval '1 ms'` : "null";
  return statement(
    `flush_one_and_${way}${rare ? "_rare" : ""}`,
    `with ${fence},
  ${clearOf("$8::int", "$9::smallint", `${afterSeq}::bigint`, also(parameters))},
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, payload, claim_id, claim_no, attempt, started_at,
      ${namesOf(stored)})
    select $6::uuid, base + 1, now(), now(), $7::json, case when yes then ${claimId}::uuid end, yes::int, yes::int,
      case when yes then now() end, ${valuesOf(stored, 0)}
    from fence, clear
  ),
  claimed as (
    insert into millrace.claim (id, lease_id, deadline, job_ids)
    select ${claimId}::uuid, ${leaseId}::uuid, ${deadline}, array[$6::uuid] from fence, clear where yes
  ),
  counted as (${countAlike("$8::int", "$5::bigint")})
  select yes, (base + 1)::float8, now(), ${notify(parameters)} from fence, clear`,
  );
}

const both = (way: keyof typeof ways) => ({
  common: flushOneAnd(way, false),
  rare: flushOneAnd(way, true),
});
const flushOne = { claim: both("claim"), hand: both("hand") };

function oneFlush(way: keyof typeof ways, flush: Flush, own: readonly string[]): ShapedFlush {
  const { rare } = differences(flush.jobs);
  const values = columnsOf({ rare }).map((column) => sameFor(flush.jobs, column));
  return {
    source: flushOne[way][rare ? "rare" : "common"],
    values: [...firstValues(flush), ...values, ...own],
  };
}

const firstValues = ({ flushNo, producer, channel, notice, jobs }: Flush) => [
  ...[String(flushNo), producer, channel, notice, String(jobs.length)],
  ...idsAndPayloads(jobs),
];

/** For one job and one hint. */
export function claimedFlush(flush: Flush, claim: ImmediateClaim): ShapedFlush {
  const afterSeq = String(claim.hints[0]?.afterSeq ?? 0);
  return oneFlush("claim", flush, [claim.claimId, claim.leaseId, afterSeq]);
}

/** For one job. */
export function handedFlush(flush: Flush, handover: Handover): ShapedFlush {
  const { claimId, leaseId, offerId, afterSeq, leaseLeftMs, channel, texts } = handover;
  const [text] = texts;
  const notice = handedText({ claimId, leaseId, jobId: flush.jobs[0]?.id ?? "" });
  const claimed = [claimId, leaseId, String(afterSeq), offerId, String(leaseLeftMs)];
  const told = [channel, notice, text === undefined ? "" : `\n${text}`];
  return oneFlush("hand", flush, [...claimed, ...told]);
}

export interface ShapedFlush {
  readonly source: Statement;
  readonly values: (string | null)[];
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
  return { source: statementOf(shape), values: [...firstValues(flush), ...values] };
}
