// Every time in Millrace is the database's now(), and nobody can move that. So time passes the other
// way round: what waits is made older. A job that is due in an hour is, after an hour's advance, due
// now; what expires in that hour has expired; idempotency keys and the cool-downs of breakers age too.
// Jobs that run or have ended, leases and the handlers' own clocks (Date.now()) stay as they are.

import { randomUUID } from "node:crypto";
import type { Database } from "../store/postgres/database.ts";
import { statement } from "../store/postgres/statement.ts";
import type { NoticeTexts, UpkeepSession } from "../store/store.ts";

const makeOlder = statement(
  "make_older",
  `with older as (select $1::float8 * interval '1 ms' as by),
  scheduled as (
    update millrace.scheduled_job
    set due_at = due_at - by, created_at = created_at - by, expires_at = expires_at - by from older
  ),
  ready as (
    update millrace.job
    set ready_at = ready_at - by, created_at = created_at - by, expires_at = expires_at - by from older
    where claim_id is null
  ),
  cooling as (
    update millrace.breaker b set retry_at = retry_at - by, probes = (
      select coalesce(jsonb_object_agg(key, value::text::float8 - extract(epoch from by)), '{}') from jsonb_each(b.probes)
    ) from older where state <> 'CLOSED'
  )
  update millrace.unique_name set expires_at = expires_at - by from older`,
);

const notify = statement("notify", "select pg_notify($1::text, $2::text)");

const mostAtOnce = 1_000;

export interface TimeKeepers {
  readonly database: Database;
  readonly upkeep: UpkeepSession;
  readonly notices: NoticeTexts;
  readonly breakers: { reread(): Promise<void> };
}

/** Moves time on; returns the queues in which jobs fell due. Workers that listen are told. */
export async function passTime(ms: number, keepers: TimeKeepers): Promise<Set<number>> {
  await keepers.database.query(makeOlder, [ms]);
  await keepers.breakers.reread();
  return promoteDue(keepers);
}

/** What is due becomes ready and what is over expires, now rather than at the next round. */
export async function promoteDue(keepers: TimeKeepers): Promise<Set<number>> {
  const { database, upkeep, notices } = keepers;
  while ((await upkeep.expire(mostAtOnce, randomUUID())) > 0);
  const queueIds = new Set<number>();
  for (;;) {
    const promoted = await upkeep.promote(mostAtOnce);
    for (const id of promoted.queueIds) queueIds.add(id);
    if (promoted.promoted < mostAtOnce) break;
  }
  if (queueIds.size > 0) await database.query(notify, [database.channel, notices.ready(queueIds)]);
  return queueIds;
}
