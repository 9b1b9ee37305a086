// The statement of the general way in, as a family: jobs with places of their own and jobs with labels
// bring more rows, and those that have neither are not to pay for them.

import { type PlaceParts, withCounts, withLanes, withoutLanes } from "./enqueue-places.ts";
import { newJobNames, newJobRows } from "./job-columns.ts";
import { statement } from "./statement.ts";

const withoutLabels = { name: "", rows: "" };
const withLabels = (first: number): typeof withoutLabels => ({
  name: "_labels",
  rows: `,
  labelled as (
    insert into millrace.job_label (tenant, name, value, job_id)
    select a.tenant, l.name, l.value, a.id
    from unnest($${first}::text::uuid[], $${first + 1}::text::text[], $${first + 2}::text::text[])
      l (job_id, name, value) join accepted a on a.id = l.job_id
  )`,
});

// $1/$2: flush number and producer, or null inside the caller's transaction.
const enqueueGeneralWith = (
  { name, rows, names, columns, counted }: PlaceParts,
  labels: typeof withoutLabels,
) =>
  statement(
    `enqueue_general${name}${labels.name}`,
    `with fence as (
    update millrace.producer set flush_no = $1::text::bigint, seen_at = now()
    where id = $2::text::uuid and flush_no = $1::text::bigint - 1
    returning 1
  ),
  base as (
    select nextval('millrace.flush_seq') * 1024 as base where $1::text is null or exists (select from fence)
  ),
  input as materialized (
    select r.*, b.base + r.place as seq, q.key_ttl_seconds
    from base b, ${newJobRows},
      unnest($18::text::bigint[]), unnest($19::text::text[]), unnest($20::text::boolean[])${rows}
    ) with ordinality r (${newJobNames}, delay_ms, request_hash, unique_reference, ${names}place)
    join millrace.queue q on q.id = r.queue_id
  ),
  keyed as (
    insert into millrace.unique_name as n (scope, key, job_id, request_hash, expires_at)
    select 'key:' || tenant, idempotency_key, id, decode(request_hash, 'hex'), now() + key_ttl_seconds * interval '1 s'
    from input where idempotency_key is not null order by 1, 2
    on conflict (scope, key) do update
      set job_id = excluded.job_id, request_hash = excluded.request_hash, expires_at = excluded.expires_at
      where n.expires_at < now()
    returning job_id
  ),
  referenced as (
    insert into millrace.unique_name as n (scope, key, job_id)
    select 'ref:' || queue_id || ':' || tenant, reference, id
    from input
    where unique_reference and (idempotency_key is null or id in (select job_id from keyed)) order by 1, 2
    on conflict (scope, key) do nothing
    returning job_id
  ),
  accepted as materialized (
    select * from input
    where (idempotency_key is null or id in (select job_id from keyed))
      and (unique_reference is not true or id in (select job_id from referenced))
  ),
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant,
      payload, expires_at, max_runtime_ms, correlation_id, idempotency_key, reference, meta${columns})
    select id, seq, now(), now(), queue_id, weight, max_attempts, type, tenant, payload::json,
      now() + expires_in_ms * interval '1 ms', max_runtime_ms, correlation_id, idempotency_key, reference, meta${columns}
    from accepted where delay_ms is null
  ),
  delayed as (
    insert into millrace.scheduled_job (id, due_at, created_at, queue_id, weight, max_attempts, type, tenant,
      payload, expires_at, max_runtime_ms, correlation_id, idempotency_key, reference, meta${columns})
    select id, now() + delay_ms * interval '1 ms', now(), queue_id, weight, max_attempts, type, tenant, payload::json,
      now() + expires_in_ms * interval '1 ms', max_runtime_ms, correlation_id, idempotency_key, reference, meta${columns}
    from accepted where delay_ms is not null
  ),${counted}
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, enqueued)
    select queue_id, coalesce($2::text::uuid, gen_random_uuid()), date_trunc('minute', now()), count(*)
    from accepted group by queue_id
    on conflict (queue_id, process, minute) do update
      set enqueued = queue_count.enqueued + excluded.enqueued
  )${labels.rows}
  select null::uuid as id, case when $17::text is not null then pg_notify($16::text, $17::text) end as notified from base
  union all
  select id, null from accepted`,
  );

const bareOrLabelled = (place: PlaceParts, firstLabelParameter: number) => ({
  bare: enqueueGeneralWith(place, withoutLabels),
  labelled: enqueueGeneralWith(place, withLabels(firstLabelParameter)),
});

/** By what the jobs need: most need neither a place of their own nor labels. */
export const enqueueGeneral = {
  plain: bareOrLabelled(withoutLanes, 21),
  lanes: bareOrLabelled(withLanes, 23),
  counted: bareOrLabelled(withCounts, 23),
};
