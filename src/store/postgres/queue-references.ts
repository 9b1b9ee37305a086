// Unique references are switched on for a queue that may hold items already: their references are taken from
// then on as if they had been added under the rule. Where one is used twice, the rule cannot hold.

import { MillraceError } from "../../domain/errors.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

/** So many rows are looked through and named within seconds. */
const mostReferences = 50_000;

const lock = statement(
  "lock_queue_references",
  `select id, enforce_unique_reference as enforced from millrace.queue
  where tenant = $1::text and name = $2::text and deleted_at is null for update`,
);

// What was deleted has given its reference up, and what was reprocessed has passed it on.
const register = statement(
  "register_references",
  `with kept as materialized (
    (select tenant, reference, id from millrace.job where queue_id = $1::int and reference is not null
    union all
    select tenant, reference, id from millrace.scheduled_job where queue_id = $1::int and reference is not null
    union all
    select tenant, reference, id from millrace.dead_job
    where queue_id = $1::int and reference is not null and reprocessed_as is null
    union all
    select tenant, reference, id from millrace.history
    where queue_id = $1::int and reference is not null and reprocessed_as is null and state <> 'deleted')
    limit $2::int + 1
  ),
  found as materialized (
    select count(*)::int as items, (select count(*)::int from (
      select from kept group by tenant, reference having count(*) > 1) d) as duplicates
    from kept
  ),
  named as (
    insert into millrace.unique_name (scope, key, job_id)
    select 'ref:' || $1::int || ':' || k.tenant, k.reference, k.id
    from kept k, found f where f.items <= $2::int and f.duplicates = 0 order by 1, 2
    on conflict (scope, key) do nothing
  )
  select items, duplicates from found`,
);

/** In the transaction that switches it on. Nothing to do where it is on already. */
export async function registerReferences(
  query: Database["query"],
  tenant: string,
  name: string,
): Promise<void> {
  const [queue] = await query<{ id: number; enforced: boolean }>(lock, [tenant, name]);
  if (queue === undefined || queue.enforced) return;
  const values = [queue.id, mostReferences];
  const [found] = await query<{ items: number; duplicates: number }>(register, values);
  const { items = 0, duplicates = 0 } = found ?? {};
  if (items > mostReferences)
    throw new MillraceError(
      "REFERENCES_NOT_UNIQUE",
      `The queue holds more than ${mostReferences} items with references: too many to take at once.`,
      { details: { limit: mostReferences } },
    );
  if (duplicates > 0)
    throw new MillraceError(
      "REFERENCES_NOT_UNIQUE",
      `${duplicates} references are used more than once in this queue.`,
      { details: { duplicates } },
    );
}
