// How robots end what they hold, by the same outcome rule as workers. The claim row is locked first,
// as the reclaimer does, so that a settle and a lapse at the same moment do not meet half-way.

import { NonRetryableError, RetryableError } from "../../domain/error-class.ts";
import { type Outcome, outcomeOfFailure } from "../../domain/outcome.ts";
import { defaultRetryPolicy } from "../../domain/retry-policy.ts";
import { appendEntry, errorFields, type Timeline } from "../../domain/timeline.ts";
import { tokenText } from "../../domain/token.ts";
import type { ItemEnd, ItemFailure, ItemHold } from "../item.ts";
import type { Settlement } from "../settlement.ts";
import type { Database } from "./database.ts";
import { noticeTexts } from "./notices.ts";
import { settleJobs } from "./settle.ts";
import { type Runner, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";
import { untilGone } from "./until-gone.ts";

const complete = statement(
  "complete_item",
  `with held as materialized (
    select c.id, c.robot from millrace.claim c
    where c.id = $2::uuid and c.holder = $4::uuid and c.lease_id is null for update
  ),
  settled as (
    delete from millrace.job j where j.ctid = any (array(
      select found.tid from held cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.id = $1::uuid and j.claim_id = held.id and j.claim_no = $3::int limit 1
      ) found)) and j.claim_id = $2::uuid
    returning j.*
  ),
  archived as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, result,
      correlation_id, idempotency_key, reference, meta, timeline)
    select s.id, 'completed', s.created_at, s.started_at, now(), s.claim_id, s.queue_id, s.claim_no,
      q.retention_days, s.weight, s.attempt, s.max_attempts, s.crash_count, s.type, s.tenant, h.robot, s.payload,
      $5::json, s.correlation_id, s.idempotency_key, s.reference, s.meta, s.timeline
    from settled s join millrace.queue q on q.id = s.queue_id cross join held h
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, completed)
    select queue_id, $6::uuid, date_trunc('minute', now()), 1 from settled
    on conflict (queue_id, process, minute) do update set completed = queue_count.completed + 1
  ),
  tenants_counted as (${countTenants("settled", "-", "$6::uuid")}),
  forgotten as (delete from millrace.claim c where c.id = $2::uuid and exists (select from settled))
  select id from settled`,
);

const hold = statement(
  "hold_item",
  `with held as materialized (
    select c.id, c.robot from millrace.claim c
    where c.id = $2::uuid and c.holder = $4::uuid and c.lease_id is null for update
  )
  select j.type, j.attempt, j.max_attempts, j.crash_count, j.timeline, j.started_at,
    j.cancel_requested, now() as now, held.robot
  from held cross join lateral (
    select * from millrace.job j where j.id = $1::uuid and j.claim_id = held.id and j.claim_no = $3::int limit 1
    for update
  ) j`,
);

const describe = statement(
  "describe_dead_item",
  `update millrace.dead_job set exception_type = $2::text, result = $3::json where id = $1::uuid`,
);

const forget = statement(
  "forget_item_claim",
  `with forgotten as (delete from millrace.claim where id = $1::uuid)
  select case when $2::text is not null then pg_notify(@channel, $2::text) end`,
);

interface HeldRow {
  [column: string]: unknown;
  type: string;
  attempt: number;
  max_attempts: number;
  crash_count: number;
  timeline: Timeline | null;
  started_at: Date;
  cancel_requested: boolean;
  now: Date;
  robot: string;
}

export async function completeItem(
  database: Database,
  { id, token, holder }: ItemHold,
  result: string | null,
  process: string,
): Promise<boolean> {
  const values = [id, token.claimId, token.claimNo, holder, result, process];
  let isCompleted = false;
  const settle = async () => {
    isCompleted = (await database.query(complete, values)).length > 0;
    return new Set(isCompleted ? [id] : []);
  };
  const holds = async () => (await database.query(hold, values.slice(0, 4))).length > 0;
  await untilGone([{ id, token }], settle, async () => new Set((await holds()) ? [id] : []));
  return isCompleted;
}

export function failItem(
  database: Database,
  held: ItemHold,
  failure: ItemFailure,
  process: string,
): Promise<ItemEnd | null> {
  return endItem(database, held, process, (run) => {
    // Whoever fails after being asked to stop has stopped.
    if (run.cancel_requested) return { outcome: { kind: "cancelled" } };
    const { isBusiness, message, random } = failure;
    const error = isBusiness ? new NonRetryableError(message) : new RetryableError(message);
    // Ours, not the robot's.
    delete error.stack;
    return { ...outcomeOf(run, error, random), failure };
  });
}

export const releaseItem = (
  database: Database,
  held: ItemHold,
  process: string,
): Promise<ItemEnd | null> =>
  endItem(database, held, process, () => ({ outcome: { kind: "released" } }));

function outcomeOf(run: HeldRow, error: Error, random: number) {
  const { type, attempt } = run;
  const ran = { type, attempt, maxAttempts: run.max_attempts, crashCount: run.crash_count };
  const outcome: Outcome = outcomeOfFailure(ran, error, { policy: defaultRetryPolicy, random });
  if (outcome.kind === "completed") throw new TypeError("a failure completes nothing");
  return { outcome };
}

interface End {
  readonly outcome: Settlement["outcome"];
  readonly failure?: ItemFailure;
}

function endItem(
  database: Database,
  { id, token, holder }: ItemHold,
  process: string,
  decide: (run: HeldRow) => End,
): Promise<ItemEnd | null> {
  return database.transaction(async (query) => {
    const [run] = await query<HeldRow>(hold, [id, token.claimId, token.claimNo, holder]);
    if (run === undefined) return null;
    const { outcome, failure } = decide(run);
    const settling = settlement(id, token, run, outcome, failure?.exceptionType ?? null);
    const settled = await settleJobs(runnerOf(query), [settling], {
      worker: run.robot,
      process,
    });
    const kind = (settled.get(id) as Outcome["kind"] | undefined) ?? null;
    if (kind === "dead" && failure !== undefined)
      await query(describe, [id, failure.exceptionType, failure.result]);
    const due = kind === "retried" && "delayMs" in outcome ? outcome.delayMs : null;
    await query(forget, [token.claimId, due === null ? null : noticeTexts.due(due)]);
    return kind === null ? null : { outcome: kind, durationMs: +run.now - +run.started_at };
  });
}

function settlement(
  id: string,
  token: ItemHold["token"],
  run: HeldRow,
  outcome: Settlement["outcome"],
  exceptionType: ItemFailure["exceptionType"],
): Settlement {
  const entry = {
    token: tokenText(token),
    attempt: run.attempt,
    worker: run.robot,
    startedAt: run.started_at.toISOString(),
    endedAt: run.now.toISOString(),
    outcome: outcome.kind,
    ...errorFields("error" in outcome ? outcome.error : undefined),
    ...(exceptionType === null ? {} : { exceptionType }),
  };
  return { id, token, outcome, timeline: appendEntry(run.timeline ?? [], entry) };
}

const runnerOf = (query: Database["query"]): Runner => ({
  query: query as Runner["query"],
  rows: async (source, values) =>
    (await query(source, [...values])).map((row) => Object.values(row)),
});
