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
  const { own, also, notify } = ways[way];
  const parameters = Array.from({ length: own }, (_, n) => parameter(stored.length + n));
  const [claimId, leaseId, afterSeq] = parameters;
  const deadline = rare ? `now() + ${parameter(runtimeColumn)}::int * interval '1 ms'` : "null";
  const yes = `${clearOf("$8::int", "$9::smallint", `${afterSeq}::bigint`)}${also(parameters)}`;
  return statement(
    `flush_one_and_${way}${rare ? "_rare" : ""}${tally ? "_tally" : ""}`,
    `with ${fenceAnd(`, ${yes} as yes`, tally ? tallied("$8::int") : "")},
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, payload, claim_id, claim_no, attempt, started_at,
      ${namesOf(stored)})
    select $6::uuid, base + 1, now(), now(), $7::json, case when yes then ${claimId}::uuid end, yes::int, yes::int,
      case when yes then now() end, ${valuesOf(stored, 0)}
    from fence
  ),
  claimed as (
    insert into millrace.claim (id, lease_id, deadline, job_ids)
    select ${claimId}::uuid, ${leaseId}::uuid, ${deadline}, array[$6::uuid] from fence where yes
  )${tally ? "" : `,\n  counted as (${countAlike("$8::int", "$5::bigint")})`}
  select yes, (base + $5::bigint)::float8, ${flushedMs}, ${notify(parameters)} from fence`,
  );
}

const both = (way: Way, rare: boolean) => ({
  counted: flushOneAnd(way, { rare, tally: false }),
  tallied: flushOneAnd(way, { rare, tally: true }),
});
const flushOne = {
  claim: { common: both("claim", false), rare: both("claim", true) },
  hand: { common: both("hand", false), rare: both("hand", true) },
};

function oneFlush(way: Way, flush: Flush, tally: boolean, own: readonly string[]): ShapedFlush {
  const job = flush.jobs[0] as NewJob;
  const rare = hasRare(job);
  const { flushNo, producer, channel, notice } = flush;
  const { queueId, weight, maxAttempts } = job;
  // Spelled out, as hasRare is.
  const values: (string | null)[] = [
    ...[String(flushNo), producer, channel, notice, "1", job.id, oneLine(job.payload)],
    ...[String(queueId), String(weight), String(maxAttempts), job.type, job.tenant],
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
  const afterSeq = String(claim.hints[0]?.afterSeq ?? 0);
  return oneFlush("claim", flush, tally, [claim.claimId, claim.leaseId, afterSeq]);
}

/** For one job. */
export function handedFlush(flush: Flush, handover: Handover, tally: boolean): ShapedFlush {
  const { claimId, leaseId, offerId, afterSeq, leaseLeftMs, channel, texts } = handover;
  const [text] = texts;
  const notice = handedText({ claimId, leaseId, jobId: flush.jobs[0]?.id ?? "" });
  const claimed = [claimId, leaseId, String(afterSeq), offerId, String(leaseLeftMs)];
  const told = [channel, notice, text === undefined ? "" : `\n${text}`];
  return oneFlush("hand", flush, tally, [...claimed, ...told]);
}
