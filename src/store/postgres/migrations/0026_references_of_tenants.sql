-- A reference is unique in its queue and tenant: `ref:<queue>:<tenant>`, where it was `ref:<queue>` before. See
-- docs/design/storage.md, "Names".

-- Of an item that is still kept. A job moves between tables, so it is looked for in all of them.
create function millrace.tenant_of(job_id uuid) returns text language sql stable as $$
  select tenant from millrace.job where id = $1
  union all select tenant from millrace.scheduled_job where id = $1
  union all select tenant from millrace.dead_job where id = $1
  union all select tenant from millrace.history where id = $1
  limit 1
$$;

-- Processes of the version before go on writing the old form, and refuse by it. What they write counts for
-- those of this version as well. What is taken here already they meet as a lock that is held: they tell the
-- one call that it is busy, and let the others of its batch pass.
create function millrace.name_reference() returns trigger language plpgsql as $$
declare
  owner text := millrace.tenant_of(new.job_id);
begin
  if owner is null then
    return null;
  end if;
  insert into millrace.unique_name (scope, key, job_id) values (new.scope || ':' || owner, new.key, new.job_id)
  on conflict (scope, key) do nothing;
  if not found then
    raise exception using errcode = 'lock_not_available', message = 'the reference is already used in this queue';
  end if;
  return null;
end $$;

-- Most of it without a lock; what came in meanwhile after the trigger, whose lock keeps everybody out.
insert into millrace.unique_name (scope, key, job_id)
select n.scope || ':' || t.tenant, n.key, n.job_id
from millrace.unique_name n cross join lateral (select millrace.tenant_of(n.job_id) as tenant) t
where n.scope ~ '^ref:[0-9]+$' and t.tenant is not null
on conflict (scope, key) do nothing;

create trigger unique_name_reference after insert on millrace.unique_name
for each row when (new.scope ~ '^ref:[0-9]+$') execute function millrace.name_reference();

with missing as materialized (
  select n.scope, n.key, n.job_id from millrace.unique_name n
  where n.scope ~ '^ref:[0-9]+$'
    and not exists (select from millrace.unique_name o where o.job_id = n.job_id and o.scope ~ '^ref:[0-9]+:')
)
insert into millrace.unique_name (scope, key, job_id)
select m.scope || ':' || t.tenant, m.key, m.job_id
from missing m cross join lateral (select millrace.tenant_of(m.job_id) as tenant) t
where t.tenant is not null
on conflict (scope, key) do nothing;

-- Workers look for the tenants' own queues of the names they serve.
create index queue_tenant_name on millrace.queue (name) where tenant <> '';

-- The function for other languages.
create or replace function millrace.enqueue(type text, payload jsonb, queue text default 'default', tenant text default 'default',
  key text default null, delay interval default null, priority int default 5, reference text default null,
  correlation_id text default null, max_attempts int default null, expires_in interval default null,
  ordering_key text default null, limit_key text default null)
returns uuid language plpgsql as $$
#variable_conflict use_column
declare
  new_id uuid := millrace.new_job_id();
  body jsonb := coalesce(enqueue.payload, 'null');
  due timestamptz := case when enqueue.delay > interval '0' then now() + enqueue.delay end;
  expiry timestamptz := now() + enqueue.expires_in;
  target millrace.queue;
  attempts smallint;
  request bytea;
  owner record;
  depth bigint;
  slot int := 0;
  lane int := coalesce(millrace.lane_of(enqueue.tenant, enqueue.ordering_key, true),
    millrace.lane_of(enqueue.tenant, enqueue.limit_key, false), 0);
  notes jsonb := jsonb_strip_nulls(jsonb_build_object(
    'source', 'sql', 'orderingKey', enqueue.ordering_key, 'limitKey', enqueue.limit_key));
  own millrace.tenant;
begin
  if enqueue.ordering_key is not null and enqueue.limit_key is not null then
    raise exception using errcode = 'MR400',
      message = 'OPTION_INVALID: a job has an ordering_key or a limit_key, not both';
  end if;
  perform millrace.check_enqueue(
    array[enqueue.type, enqueue.queue, enqueue.tenant, enqueue.key, enqueue.reference, enqueue.correlation_id,
      enqueue.ordering_key, enqueue.limit_key],
    body, enqueue.delay, enqueue.priority, enqueue.max_attempts, enqueue.expires_in);
  target := millrace.ensure_queue(enqueue.queue);
  attempts := coalesce(enqueue.max_attempts, target.max_attempts, 5);

  if enqueue.key is not null then
    request := sha256(convert_to(millrace.canonical_json(
      jsonb_build_array(enqueue.type, enqueue.queue, enqueue.tenant, body)), 'UTF8'));
    insert into millrace.unique_name as n (scope, key, job_id, request_hash, expires_at)
    values ('key:' || enqueue.tenant, enqueue.key, new_id, request, now() + target.key_ttl_seconds * interval '1 s')
    on conflict (scope, key) do update
      set job_id = excluded.job_id, request_hash = excluded.request_hash, expires_at = excluded.expires_at
      where n.expires_at < now();
    if not found then
      select n.job_id, n.request_hash into owner from millrace.unique_name n
      where n.scope = 'key:' || enqueue.tenant and n.key = enqueue.key;
      if owner.request_hash = request then
        return owner.job_id;
      end if;
      raise exception using errcode = 'MR409', detail = owner.job_id::text,
        message = format('IDEMPOTENCY_CONFLICT: the idempotency key of this %s belongs to a different request', enqueue.type);
    end if;
  end if;

  if enqueue.reference is not null and target.enforce_unique_reference then
    insert into millrace.unique_name (scope, key, job_id) values ('ref:' || target.id || ':' || enqueue.tenant, enqueue.reference, new_id)
    on conflict (scope, key) do nothing;
    if not found then
      raise exception using errcode = 'MR409', message = 'REFERENCE_TAKEN: the reference is already used in this queue';
    end if;
  end if;

  if target.capacity is not null then
    select coalesce(sum(c.enqueued - c.completed - c.dead - c.removed), 0) into depth
    from millrace.queue_count c where c.queue_id = target.id;
    if depth >= target.capacity then
      raise exception using errcode = 'MR429',
        message = format('QUEUE_FULL: queue "%s" holds %s of %s jobs; 1 more does not fit', enqueue.queue, depth, target.capacity);
    end if;
  end if;

  select * into own from millrace.tenant t where t.name = enqueue.tenant;
  if num_nonnulls(target.tenant_capacity, own.capacity, own.warn_depth) > 0 then
    if exists (
      select from (select coalesce(sum(c.jobs) filter (where c.queue_id = target.id), 0) as here,
        coalesce(sum(c.jobs), 0) as everywhere from millrace.tenant_count c where c.tenant = enqueue.tenant) c
      where c.here >= target.tenant_capacity or c.everywhere >= own.capacity
    ) then
      raise exception using errcode = 'MR429',
        message = format('TENANT_FULL: tenant "%s" holds as many jobs as it may; 1 more does not fit', enqueue.tenant);
    end if;
    notes := notes || '{"counted": true}';
    insert into millrace.tenant_count (tenant, queue_id, process, minute, jobs)
    values (enqueue.tenant, target.id, gen_random_uuid(), date_trunc('minute', now()), 1);
  end if;

  if target.fairness and target.first_tenant is distinct from enqueue.tenant then
    slot := millrace.slot_of(target.id, enqueue.tenant);
  end if;
  if lane > 0 and not target.laned then
    perform millrace.use_lanes(target.id);
  end if;
  if due is null then
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload,
      expires_at, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    values (new_id, nextval('millrace.flush_seq') * 1024, now(), now(), target.id, enqueue.priority, attempts,
      enqueue.type, enqueue.tenant, body::json, expiry, enqueue.correlation_id, enqueue.key, enqueue.reference,
      notes::json, slot, lane);
  else
    insert into millrace.scheduled_job (id, due_at, created_at, queue_id, weight, max_attempts, type, tenant, payload,
      expires_at, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    values (new_id, due, now(), target.id, enqueue.priority, attempts,
      enqueue.type, enqueue.tenant, body::json, expiry, enqueue.correlation_id, enqueue.key, enqueue.reference,
      notes::json, slot, lane);
  end if;
  insert into millrace.queue_count (queue_id, process, minute, enqueued)
  values (target.id, gen_random_uuid(), date_trunc('minute', now()), 1);

  perform pg_notify(millrace.channel(), case when due is null then 'late ' || target.id
    else 'due ' || round(extract(epoch from enqueue.delay) * 1000)::bigint end);
  return new_id;
end $$;
