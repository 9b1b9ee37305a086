// A flush of one job, for a worker that waits for it: here, or elsewhere by its standing offer.

import type { Handover, ImmediateClaim, NewJob } from "../store.ts";
import {
  columnsOf,
  hasRare,
  namesOf,
  parameter,
  rareColumns,
  runtimeColumn,
  type ShapedFlush,
  textOf,
  valuesOf,
} from "./flush-columns.ts";
import { clearOf, countAlike, type Flush, fenceAnd, flushedMs } from "./flush-parts.ts";
import { handedText } from "./handed.ts";
import { oneLine } from "./job-columns.ts";
import { offerStands } from "./offers.ts";
import { type Statement, statement } from "./statement.ts";
import { tallied } from "./tally.ts";

/** Each parameter costs a pickup some microseconds, so there are no more than it needs; these come first, ... */
const [notice, jobId, payload] = ["$3::text", "$4::uuid", "$5::json"];
/** ... then the columns, and then what each way has of its own. */
const firstColumn = 6;
const column = (i: number) => parameter(i, firstColumn);
const [queueId, weight] = [`${column(0)}::int`, `${column(1)}::smallint`];

const announced = `when not yes and ${notice} is not null then pg_notify(@channel, ${notice})`;

const clear = (afterSeq: string | undefined) => clearOf(queueId, weight, `${afterSeq}::bigint`);

const ways = {
  /** For a worker of this process, which hears of it with the answer. The claim bears the id of its job. */
  claim: {
    own: 2,
    claimId: () => jobId,
    yes: ([, afterSeq]: string[]) => clear(afterSeq),
    notify: () => `case ${announced} end`,
  },
  /** For one whose run has begun already, when a flush was lost: there is nothing left to ask. */
  keep: {
    own: 1,
    claimId: () => jobId,
    yes: () => "true",
    notify: () => `case ${announced} end`,
  },
  /** For one elsewhere, which is told what it got. */
  hand: {
    own: 8,
    claimId: (own: string[]) => `${own[7]}::uuid`,
    yes: ([leaseId, afterSeq, offerId, leftMs]: string[]) =>
      `${clear(afterSeq)} and ${offerStands(`${leaseId}::uuid`, `${offerId}::uuid`, `${leftMs}::int`)}`,
    notify: (own: string[]) => {
      const [channel, handed, job] = own.slice(4);
      return `case when yes then pg_notify(${channel}::text,
        ${handed}::text || ' ' || (base + 1) || ' ' || date_part('epoch', now()) || ${job}::text)
      ${announced} end`;
    },
  },
};

type Way = keyof typeof ways;

interface Shape {
  readonly rare: boolean;
  /** Is it counted in the producer's row? */
  readonly tally: boolean;
}

// One job for a worker that waits for it: stored as claimed, unless an older one is ready or the queue rests.
// Every pickup there waits for this, so it says nothing that most jobs do not need.
function flushOneAnd(way: Way, { rare, tally }: Shape): Statement {
  const stored = columnsOf({ rare });
  const { own, yes, notify, claimId } = ways[way];
  const parameters = Array.from({ length: own }, (_, n) => column(stored.length + n));
  const [leaseId] = parameters;
  const deadline = rare ? `now() + ${column(runtimeColumn)}::int * interval '1 ms'` : "null";
  return statement(
    `flush_one_and_${way}${rare ? "_rare" : ""}${tally ? "_tally" : ""}`,
    `with ${fenceAnd(`, ${yes(parameters)} as yes`, tally ? tallied(queueId) : "")},
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, payload, claim_id, claim_no, attempt, started_at,
      ${namesOf(stored)})
    select ${jobId}, base + 1, now(), now(), ${payload}, case when yes then ${claimId(parameters)} end, yes::int,
      yes::int, case when yes then now() end, ${valuesOf(stored, 0, firstColumn)}
    from fence
  ),
  claimed as (
    insert into millrace.claim (id, lease_id, deadline, job_ids)
    select ${claimId(parameters)}, ${leaseId}::uuid, ${deadline}, array[${jobId}] from fence where yes
  )${tally ? "" : `,\n  counted as (${countAlike(queueId, "1")})`}
  select yes, (base + 1)::float8, ${flushedMs}, ${notify(parameters)} from fence`,
  );
}

const both = (way: Way, rare: boolean) => ({
  counted: flushOneAnd(way, { rare, tally: false }),
  tallied: flushOneAnd(way, { rare, tally: true }),
});
const flushOne = {
  claim: { common: both("claim", false), rare: both("claim", true) },
  keep: { common: both("keep", false), rare: both("keep", true) },
  hand: { common: both("hand", false), rare: both("hand", true) },
};

function oneFlush(way: Way, flush: Flush, tally: boolean, own: readonly string[]): ShapedFlush {
  const job = flush.jobs[0] as NewJob;
  const rare = hasRare(job);
  // Spelled out, as hasRare is.
  const values: (string | null)[] = [
    ...[String(flush.flushNo), flush.producer, flush.notice, job.id, oneLine(job.payload)],
    ...[String(job.queueId), String(job.weight), String(job.maxAttempts), job.type, job.tenant],
  ];
  if (rare) for (const { of } of rareColumns) values.push(textOf(of(job)));
  for (const value of own) values.push(value);
  return {
    source: flushOne[way][rare ? "rare" : "common"][tally ? "tallied" : "counted"],
    values,
  };
}

/** For one job and one hint. */
export function claimedFlush(flush: Flush, claim: ImmediateClaim, tally: boolean): ShapedFlush {
  if (claim.begun === true) return oneFlush("keep", flush, tally, [claim.leaseId]);
  const afterSeq = String(claim.hints[0]?.afterSeq ?? 0);
  return oneFlush("claim", flush, tally, [claim.leaseId, afterSeq]);
}

/** For one job. */
export function handedFlush(flush: Flush, handover: Handover, tally: boolean): ShapedFlush {
  const { claimId, leaseId, offerId, afterSeq, leaseLeftMs, channel, texts } = handover;
  const [text] = texts;
  const notice = handedText({ claimId, leaseId, jobId: flush.jobs[0]?.id ?? "" });
  const claimed = [leaseId, String(afterSeq), offerId, String(leaseLeftMs)];
  const told = [channel, notice, text === undefined ? "" : `\n${text}`];
  return oneFlush("hand", flush, tally, [...claimed, ...told, claimId]);
}
