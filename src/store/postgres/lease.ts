// A worker process's lease: one row, renewed in one statement that also lists the claims held.

import type { LeaseMark, Renewal } from "../store.ts";
import type { Connection } from "./connection.ts";
import { asCoded, isRetryable } from "./failures.ts";
import { leftTenants, moveEnded } from "./settle.ts";
import { arrayText, statement } from "./statement.ts";

const open = statement(
  "open_lease",
  `insert into millrace.lease (id, worker, expires_at, info, spared)
  values ($1::uuid, $2::text, now() + $3::int * interval '1 ms', $4::json, false)`,
);

// Only a claim older than the previous renewal can be known to be unlisted on purpose: whoever holds
// it has had an answer since, and registers every claim before sending it.
const renew = statement(
  "renew_lease",
  `with before as (
    select id, renewed_at from millrace.lease where id = $1::uuid for update
  ),
  renewed as (
    update millrace.lease l set renewed_at = now(), expires_at = now() + $2::int * interval '1 ms',
      alone_claim = coalesce($4::uuid, l.alone_claim), shared_claim = coalesce($5::uuid, l.shared_claim),
      spared = coalesce($6::boolean, l.spared)
    from before b where l.id = b.id returning l.id, b.renewed_at as before
  ),
  untimed as (
    update millrace.claim c set deadline = null from renewed r where c.id = $7::uuid and c.lease_id = r.id
  )
  select (select json_agg(x) from millrace.claim c, unnest(c.cancels) x where c.lease_id = r.id) as cancels,
    (select json_agg(c.id) from millrace.claim c
      where c.lease_id = r.id and c.created_at < r.before and c.id <> all ($3::uuid[])) as unlisted,
    date_part('epoch', r.before) as before
  from renewed r`,
);

// $1 are claims, $3 the lease, as the process that the counts belong to.
const giveBack = statement(
  "give_back_claims",
  `with unlisted as materialized (select id, job_ids from millrace.claim where id = any ($1::uuid[])),
  allowed as materialized (
    select x.id, u.id as claim_id, j.claim_no, 'released' as kind, 0::bigint as delay_ms, false as charged,
      null::text as error_class, null::text as fingerprint, null::text as message, null::text as stack, j.timeline
    from unlisted u cross join unnest(u.job_ids) x (id)
    cross join lateral (
      select claim_no, timeline from millrace.job where id = x.id and claim_id = u.id limit 1
    ) j
  ),
  ${moveEnded},
  ${leftTenants},
  forgotten as (
    delete from millrace.claim c where c.id in (select id from unlisted)
      and not exists (select from allowed a where a.claim_id = c.id
        and a.id not in (select id from freed) and a.id not in (select id from ended))
  )
  select ((select count(*) from freed) + (select count(*) from ended))::int as freed,
    (select pg_notify(@channel, 'late ' || string_agg(distinct queue_id::text, ',')) from freed having count(*) > 0)`,
);

const close = statement(
  "close_lease",
  `with closed as (delete from millrace.lease where id = $1::uuid returning id)
  delete from millrace.claim c using closed where c.lease_id = closed.id
    and not exists (select from unnest(c.job_ids) x (id)
      where (select true from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1))`,
);

export interface LeaseOptions {
  readonly leaseId: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly info: unknown;
}

export async function openLease(connection: Connection, options: LeaseOptions): Promise<void> {
  const { leaseId, worker, leaseMs, info } = options;
  try {
    await connection.query(open, [leaseId, worker, String(leaseMs), JSON.stringify(info)]);
  } catch (error) {
    throw asCoded(error);
  }
}

export async function renewLease(
  connection: Connection,
  leaseId: string,
  leaseMs: number,
  claims: readonly string[],
  { alone, shared, spared, untimed }: LeaseMark = {},
): Promise<Renewal> {
  type Row = { cancels: string[] | null; unlisted: string[] | null; before: number };
  const marks = [alone ?? null, shared ?? null, spared?.toString() ?? null, untimed ?? null];
  const values = [leaseId, String(leaseMs), arrayText(claims), ...marks];
  const [row] = await connection.query<Row>(renew, values);
  if (row === undefined) return { renewed: false, cancels: [], released: 0, releasedBefore: 0 };
  const released = row.unlisted === null ? 0 : await release(connection, leaseId, row.unlisted);
  return { renewed: true, cancels: row.cancels ?? [], released, releasedBefore: row.before };
}

/** Apart from the renewal, which must not wait for anybody's lock; what fails is tried at the next one. */
async function release(
  connection: Connection,
  leaseId: string,
  claims: readonly string[],
): Promise<number> {
  try {
    const values = [arrayText(claims), null, leaseId];
    const rows = await connection.query<{ freed: number }>(giveBack, values);
    return rows[0]?.freed ?? 0;
  } catch (error) {
    if (isRetryable(error)) return 0;
    throw error;
  }
}

/** Whatever a closed lease still holds is found by the reclaimer at once: a claim without a lease is over. */
export async function closeLease(connection: Connection, leaseId: string): Promise<void> {
  await connection.query(close, [leaseId]);
}
