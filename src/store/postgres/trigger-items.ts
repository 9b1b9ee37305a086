// Items of a queue that belong to a job: each item's claim_id is the job's id, and the job's claim row
// has neither lease nor expiry. docs/design/triggers.md says why. Bodies over `run`, as for firing.

import { MillraceError } from "../../domain/errors.ts";
import { type Outcome, outcomeOfFailure } from "../../domain/outcome.ts";
import { defaultRetryPolicy } from "../../domain/retry-policy.ts";
import { appendEntry, errorFields, type Timeline } from "../../domain/timeline.ts";
import { tokenText } from "../../domain/token.ts";
import type { Trigger } from "../../domain/trigger.ts";
import type { Settlement } from "../store.ts";
import type { ItemSettlement } from "../triggers.ts";
import { settleJobsIn } from "./settle.ts";
import { type RunStatement, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";

const claimedNames = `id, claim_no, type, queue_id, tenant, attempt, max_attempts, crash_count, payload, created_at,
    started_at, weight, seq, rare, tid`;

const take = statement(
  "trigger_take_items",
  `with picked as materialized (
    select j.ctid as tid, j.id, j.weight, j.tenant_slot, j.lane, j.seq from millrace.job j
    where j.queue_id = $1::int and j.tenant = $2::text and j.claim_id is null
      and (j.expires_at is null or j.expires_at > now())
      and (select q.paused_at is null and q.is_active from millrace.queue q where q.id = $1::int)
      and not exists (select from millrace.tenant t where t.name = $2::text and t.paused_at is not null)
    order by j.weight, j.tenant_slot, j.lane, j.seq limit $3::int for update skip locked
  ),
  recorded as (
    insert into millrace.claim (id, job_ids)
    select $4::uuid, array_agg(id order by weight, tenant_slot, lane, seq) from picked having count(*) > 0
  ),
  batched as (
    insert into millrace.trigger_batch (job_id, trigger_id)
    select $4::uuid, $5::uuid from picked limit 1
  ),
  claimed as (
    update millrace.job j
    set claim_id = $4::uuid, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = now()
    where j.ctid = any (array(select tid from picked)) returning j.id
  )
  select p.id from picked p join claimed c on c.id = p.id order by p.weight, p.tenant_slot, p.lane, p.seq`,
);

// Where there are limits, keys or ageing, they are kept: as any claim, of this tenant alone. It has no deadline.
const takeLimited = statement(
  "trigger_take_limited",
  `with claimed as materialized (
    select c.id from millrace.claim_lanes($4::uuid, null, $1::int, $3::int, null, true, $2::text)
      with ordinality c (${claimedNames}, place) where c.id is not null order by c.place
  ),
  batched as (
    insert into millrace.trigger_batch (job_id, trigger_id) select $4::uuid, $5::uuid from claimed limit 1
  )
  select id from claimed`,
);
const endless = statement(
  "trigger_claim_endless",
  `update millrace.claim set deadline = null where id = $1::uuid and deadline is not null`,
);
const isLimited = statement(
  "trigger_queue_limited",
  `select q.laned or num_nonnulls(q.concurrency, q.throttle_starts, q.ageing_step_ms) > 0 as limited
  from millrace.queue q where q.id = $1::int`,
);

// Locked, so that a cancel request does not move a row between reading and ending it.
const held = (
  condition: string,
) => `select j.id, j.claim_no, j.type, j.attempt, j.max_attempts, j.crash_count,
    j.timeline, j.started_at, now() as now
  from millrace.claim c cross join unnest(c.job_ids) with ordinality x (id, place)
  cross join lateral (select * from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1 for update) j
  where c.id = $1::uuid ${condition} order by x.place`;

const readHeld = statement("trigger_read_items", held(""));
const readHeldOne = statement("trigger_read_item", held("and x.id = $2::uuid"));

// $1 ids, $2 the job that holds them, $3 the result.
const complete = statement(
  "trigger_complete_items",
  `with settled as (
    delete from millrace.job j where j.ctid = any (array(
      select found.tid from unnest($1::uuid[]) s (id) cross join lateral (
        select j.ctid as tid from millrace.job j where j.id = s.id and j.claim_id = $2::uuid limit 1
      ) found)) and j.claim_id = $2::uuid
    returning j.*
  ),
  archived as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, result,
      correlation_id, idempotency_key, reference, meta, timeline)
    select s.id, 'completed', s.created_at, s.started_at, now(), s.claim_id, s.queue_id, s.claim_no,
      q.retention_days, s.weight, s.attempt, s.max_attempts, s.crash_count, s.type, s.tenant, 'trigger', s.payload,
      $3::json, s.correlation_id, s.idempotency_key, s.reference, s.meta, s.timeline
    from settled s join millrace.queue q on q.id = s.queue_id
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, completed)
    select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*) from settled group by queue_id
  ),
  tenants_counted as (${countTenants("settled", "-", "gen_random_uuid()")})
  select id from settled`,
);

// Shared, so that neither the job's end nor its reclaim comes in between.
const lockHolder = statement(
  "trigger_lock_holder",
  `select id from millrace.job where id = $1::uuid and claim_id = $2::uuid and claim_no = $3::int for share`,
);

const readTimeline = statement(
  "trigger_read_timeline",
  `select timeline, null::uuid as completed_by from millrace.job where id = $1::uuid
  union all select timeline, null from millrace.scheduled_job where id = $1::uuid
  union all select timeline, null from millrace.dead_job where id = $1::uuid
  union all select timeline, case when state = 'completed' then claim_id end from millrace.history where id = $1::uuid`,
);

export interface HeldItem {
  readonly id: string;
  readonly claim_no: number;
  readonly type: string;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly crash_count: number;
  readonly timeline: Timeline | null;
  readonly started_at: Date;
  readonly now: Date;
}

/** The ids of the items that the job holds from now on, in the queue's order. */
export async function takeItems(
  run: RunStatement,
  trigger: Trigger,
  jobId: string,
): Promise<string[]> {
  const { id, queueId, tenant, batchSize } = trigger;
  const [queue] = await run(isLimited, [queueId]);
  const limited = queue?.limited === true;
  const rows = await run(limited ? takeLimited : take, [queueId, tenant, batchSize, jobId, id]);
  if (limited) await run(endless, [jobId]);
  return rows.map((row) => row.id as string);
}

export async function heldItems(run: RunStatement, jobId: string): Promise<HeldItem[]> {
  return (await run(readHeld, [jobId])) as unknown as HeldItem[];
}

export type ItemEnd = Settlement["outcome"] | { readonly kind: "completed"; readonly json: string };

/** Ends items that the job holds; answers how each ended. Who was asked to cancel does not come back. */
export async function endItems(
  run: RunStatement,
  jobId: string,
  items: readonly HeldItem[],
  end: ItemEnd,
  note?: string,
): Promise<ReadonlyMap<string, string>> {
  if (end.kind === "completed") {
    const ids = items.map(({ id }) => id);
    const rows = await run(complete, [ids, jobId, end.json]);
    return new Map(rows.map((row) => [row.id as string, "completed"]));
  }
  const settlements = items.map((item) => toSettlement(jobId, item, end, note));
  return settleJobsIn(run, settlements, { worker: "trigger", process: jobId });
}

function toSettlement(
  jobId: string,
  item: HeldItem,
  outcome: Settlement["outcome"],
  message?: string,
): Settlement {
  const token = { claimId: jobId, claimNo: item.claim_no };
  const entry = {
    token: tokenText(token),
    attempt: item.attempt,
    worker: "trigger",
    startedAt: item.started_at.toISOString(),
    endedAt: item.now.toISOString(),
    outcome: outcome.kind,
    ...(message === undefined ? {} : { message }),
    ...errorFields("error" in outcome ? outcome.error : undefined),
  };
  return { id: item.id, token, outcome, timeline: appendEntry(item.timeline ?? [], entry) };
}

/** One item, by the handler that runs its job. Saying the same again says ok. */
export async function settleItem(run: RunStatement, request: ItemSettlement): Promise<string> {
  const { jobId, itemId, token } = request;
  if ((await run(lockHolder, [jobId, token.claimId, token.claimNo])).length === 0)
    throw new MillraceError("STALE_TOKEN");
  const [item] = (await run(readHeldOne, [jobId, itemId])) as unknown as HeldItem[];
  if (item === undefined) return repeated(run, request);
  const settled = await endItems(run, jobId, [item], endOf(item, request));
  const kind = settled.get(itemId);
  if (kind === undefined) throw notHeld(request);
  return kind;
}

function endOf(item: HeldItem, { outcome, random }: ItemSettlement): ItemEnd {
  if (outcome.kind === "released") return { kind: "released" };
  if (outcome.kind === "completed")
    return { kind: "completed", json: JSON.stringify(outcome.result ?? null) };
  const ran = {
    type: item.type,
    attempt: item.attempt,
    maxAttempts: item.max_attempts,
    crashCount: item.crash_count,
  };
  const end: Outcome = outcomeOfFailure(ran, outcome.error, { policy: defaultRetryPolicy, random });
  if (end.kind === "completed") throw new TypeError("a failure completes nothing");
  return end;
}

const saidAs: Record<string, ItemSettlement["outcome"]["kind"]> = {
  completed: "completed",
  retried: "failed",
  snoozed: "failed",
  dead: "failed",
  released: "released",
};

async function repeated(run: RunStatement, request: ItemSettlement): Promise<string> {
  const { jobId, itemId, outcome } = request;
  for (const row of await run(readTimeline, [itemId])) {
    const entry = ((row.timeline ?? []) as Timeline).find(({ token }) =>
      token.startsWith(`${jobId}/`),
    );
    const earlier = row.completed_by === jobId ? "completed" : entry?.outcome;
    if (earlier !== undefined && saidAs[earlier] === outcome.kind) return earlier;
  }
  throw notHeld(request);
}

const notHeld = ({ itemId, jobId }: ItemSettlement) =>
  new MillraceError(
    "ITEM_NOT_HELD",
    `Item ${itemId} does not belong to job ${jobId}, or was settled.`,
  );
