// Robots' leases: one claim row per item, with an expiry of its own and the key that holds it.
//
// One statement serves all who wait in this process: so many items per queue and tenant, matched by
// their place in the order with those who asked, the first with the first.

import type { ItemHold, ItemWish, LeasedItem } from "../item.ts";
import type { Database } from "./database.ts";
import { type ItemRow, toItem } from "./items.ts";
import { payloadOf } from "./long-payload.ts";
import { arrayText, statement } from "./statement.ts";

const take = statement(
  "take_items",
  `with wish as materialized (
    select w.*, row_number() over (partition by w.queue_id, w.tenant order by w.asked) as place
    from unnest($1::int[], $2::text[], $3::uuid[], $4::text[], $5::uuid[], $6::int[])
      with ordinality w (queue_id, tenant, claim_id, robot, holder, lease_ms, asked)
    join millrace.queue q on q.id = w.queue_id and q.paused_at is null and q.is_active
    where not exists (select from millrace.tenant t where t.name = w.tenant and t.paused_at is not null)
  ),
  wanted as materialized (select queue_id, tenant, count(*)::int as items from wish group by queue_id, tenant),
  picked as materialized (
    select w.queue_id, w.tenant, f.* from wanted w cross join lateral (
      select j.ctid as tid, j.id, j.weight, j.tenant_slot, j.lane, j.seq, j.max_runtime_ms from millrace.job j
      where j.queue_id = w.queue_id and j.tenant = w.tenant and j.claim_id is null
        and (j.expires_at is null or j.expires_at > now())
      order by j.weight, j.tenant_slot, j.lane, j.seq limit w.items for update skip locked
    ) f
  ),
  placed as (
    select p.*, row_number() over (partition by p.queue_id, p.tenant
      order by p.weight, p.tenant_slot, p.lane, p.seq) as place from picked p
  ),
  matched as materialized (
    select p.tid, p.id, p.max_runtime_ms, w.claim_id, w.robot, w.holder, w.lease_ms
    from placed p join wish w on w.queue_id = p.queue_id and w.tenant = p.tenant and w.place = p.place
  ),
  recorded as (
    insert into millrace.claim (id, expires_at, deadline, job_ids, robot, holder)
    select claim_id, now() + lease_ms * interval '1 ms', now() + max_runtime_ms * interval '1 ms', array[id], robot, holder
    from matched
  )
  update millrace.job j
  set claim_id = m.claim_id, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = now()
  from matched m where j.ctid = m.tid
  returning j.id, j.queue_id, j.tenant, j.reference, 'running' as state, j.weight, ${payloadOf("j.")} as payload, null::json as result,
    j.timeline, null as error_message, null as exception_type, j.attempt, m.robot, j.started_at as locked_at,
    now() + m.lease_ms * interval '1 ms' as lock_expires_at, null::uuid as job_id, j.created_at,
    j.ready_at, now() as updated_at, j.claim_id, j.claim_no, j.seq::float8 as seq`,
);

const takeLanes = statement(
  "take_lanes",
  `select millrace.take_lanes($1::int, $2::text, $3::uuid[], $4::text[], $5::uuid[], $6::int[])`,
);

const readTaken = statement(
  "read_taken_items",
  `select j.id, j.queue_id, j.tenant, j.reference, 'running' as state, j.weight, ${payloadOf("j.")} as payload, null::json as result,
    j.timeline, null as error_message, null as exception_type, j.attempt, c.robot, j.started_at as locked_at,
    c.expires_at as lock_expires_at, null::uuid as job_id, j.created_at, j.ready_at, now() as updated_at, j.claim_id,
    j.claim_no, j.seq::float8 as seq
  from millrace.claim c cross join lateral (
    select * from millrace.job j where j.id = any (c.job_ids) and j.claim_id = c.id limit 1
  ) j where c.id = any ($1::uuid[])`,
);

// Whose lease has run out may still renew it, as long as nobody has taken the item back; the reclaimer
// locks the claim, too, so that one of the two comes first. What lies between created_at and expires_at
// is the length that it was taken for: both move together.
const longer = `greatest(c.expires_at, now() + coalesce($5::int * interval '1 ms', c.expires_at - c.created_at))`;

const renew = statement(
  "renew_item",
  `update millrace.claim c set expires_at = ${longer}, created_at = c.created_at + (${longer} - c.expires_at)
  where c.id = $2::uuid and c.holder = $4::uuid and c.lease_id is null and (c.deadline is null or c.deadline > now())
    and (select true from millrace.job j where j.id = $1::uuid and j.claim_id = c.id and j.claim_no = $3::int limit 1)
  returning c.expires_at as until, coalesce($1::uuid = any (c.cancels), false) as cancelled`,
);

type TakenRow = ItemRow & { claim_id: string; claim_no: number; seq: number; ready_at: Date };

export async function takeItems(
  database: Database,
  wishes: readonly ItemWish[],
): Promise<LeasedItem[]> {
  const limited = wishes.filter((wish) => wish.limited);
  const plain = limited.length === 0 ? wishes : wishes.filter((wish) => !wish.limited);
  const rows = [
    ...(plain.length === 0 ? [] : await takePlain(database, plain)),
    ...(limited.length === 0 ? [] : await takeLimited(database, limited)),
  ];
  return rows
    .sort((a, b) => a.weight - b.weight || a.seq - b.seq)
    .map((row) => ({
      ...toItem(row),
      readyAt: row.ready_at,
      token: { claimId: row.claim_id, claimNo: row.claim_no },
    }));
}

const takePlain = (database: Database, wishes: readonly ItemWish[]): Promise<TakenRow[]> =>
  database.query<TakenRow>(take, [
    arrayText(wishes.map((wish) => wish.queueId)),
    arrayText(wishes.map((wish) => wish.tenant)),
    arrayText(wishes.map((wish) => wish.claimId)),
    arrayText(wishes.map((wish) => wish.robot)),
    arrayText(wishes.map((wish) => wish.holder)),
    arrayText(wishes.map((wish) => wish.leaseMs)),
  ]);

/** By the rules of the claim, a queue and tenant at a time; then a lease of its own for each item. */
async function takeLimited(database: Database, wishes: readonly ItemWish[]): Promise<TakenRow[]> {
  const groups = new Map<string, ItemWish[]>();
  for (const wish of wishes) {
    const of = `${wish.queueId}/${wish.tenant}`;
    groups.set(of, [...(groups.get(of) ?? []), wish]);
  }
  for (const [first, ...others] of groups.values()) {
    if (first === undefined) continue;
    const all = [first, ...others];
    await database.query(takeLanes, [
      first.queueId,
      first.tenant,
      arrayText(all.map((wish) => wish.claimId)),
      arrayText(all.map((wish) => wish.robot)),
      arrayText(all.map((wish) => wish.holder)),
      arrayText(all.map((wish) => wish.leaseMs)),
    ]);
  }
  return database.query<TakenRow>(readTaken, [arrayText(wishes.map((wish) => wish.claimId))]);
}

export async function renewItem(
  database: Database,
  { id, token, holder }: ItemHold,
  leaseMs: number | null,
): Promise<{ until: Date; cancelled: boolean } | null> {
  const values = [id, token.claimId, token.claimNo, holder, leaseMs];
  const [row] = await database.query<{ until: Date; cancelled: boolean }>(renew, values);
  return row ?? null;
}
