-- Flow control: see docs/design/flow-control.md. Plain queues use none of this.

alter table millrace.queue
  add column first_tenant text,
  add column fairness boolean not null default true, -- wanted; `fair` says that there is a second tenant
  add column laned boolean not null default false, -- has seen a key
  add column dead_blocks_key boolean not null default false,
  add column ageing_step_ms int check (ageing_step_ms > 0),
  add column concurrency int check (concurrency > 0), add column key_concurrency int check (key_concurrency > 0),
  add column throttle_starts int check (throttle_starts > 0), add column throttle_ms int check (throttle_ms >= 10),
  add column key_throttle_starts int check (key_throttle_starts > 0),
  add column key_throttle_ms int check (key_throttle_ms >= 10),
  add column rate_limit int check (rate_limit > 0), add column rate_ms int check (rate_ms >= 10),
  add column tenant_rate_limit int check (tenant_rate_limit > 0),
  add column tenant_rate_ms int check (tenant_rate_ms >= 10);

create table millrace.tenant (
  name text primary key,
  weight int not null default 1 check (weight between 1 and 100),
  paused_at timestamptz,
  rate_limit int check (rate_limit > 0), rate_ms int check (rate_ms >= 10),
  updated_at timestamptz not null default now()
);
create sequence millrace.tenant_slot_seq as int;
create table millrace.tenant_slot (
  queue_id int not null, slot int not null, tenant text not null,
  primary key (queue_id, slot), unique (queue_id, tenant)
);
create index tenant_slot_tenant on millrace.tenant_slot (tenant);

alter table millrace.scheduled_job add column seq bigint; -- of jobs with a key that have run: their place
create index scheduled_job_lane on millrace.scheduled_job (queue_id, lane, due_at) where lane > 1 and claim_no > 0;
alter table millrace.dead_job add column lane int not null default 0, add column seq bigint; -- for the same
create index dead_job_lane on millrace.dead_job (queue_id, lane)
  where lane > 1 and state = 'dead' and reprocessed_as is null;
alter table millrace.claim add column queue_id int, add column lanes int[]; -- of controlled queues only
create index claim_queue on millrace.claim (queue_id) where queue_id is not null;

-- Its row is the lock under which a controlled queue is claimed.
create table millrace.queue_turn (queue_id int primary key) with (fillfactor = 50);
-- Whose turn it is, and how many jobs of this visit are left.
create table millrace.slot_cursor (
  queue_id int, weight smallint, slot int not null, credit int not null, primary key (queue_id, weight)
) with (fillfactor = 50);
create table millrace.lane_cursor (
  queue_id int, weight smallint, slot int, lane int not null, primary key (queue_id, weight, slot)
) with (fillfactor = 50);
create table millrace.start_count (
  queue_id int, lane int, slice bigint, starts int not null, expires_at timestamptz not null,
  primary key (queue_id, lane, slice)
) with (fillfactor = 50);
-- With what was asked for last, and how much of it was granted.
create table millrace.rate_bucket (
  key text primary key, most int not null, window_ms int not null, tokens float8 not null, at timestamptz not null,
  wanted int not null, owed int not null, granted int not null
) with (fillfactor = 50);

-- The configured schema may have any name, and the channel is named after it.
create function millrace.channel() returns text language sql stable as $$
  select 'millrace_' || s.nspname from pg_class t join pg_namespace s on s.oid = t.relnamespace
  where t.oid = 'millrace.job'::regclass
$$;

-- Odd for an ordering key, even for a limit key, never 0 or 1. The same as laneOf in domain/lane.ts.
create function millrace.lane_of(tenant text, key text, ordered boolean) returns int language sql immutable as $$
  select (('x' || substr(encode(sha256(convert_to(tenant || E'\n' || key, 'UTF8')), 'hex'), 1, 8))::bit(32)::bigint
    % 1073741823 + 1)::int * 2 + case when ordered then 1 else 0 end
$$;

create function millrace.slot_of(queue int, tenant text) returns int language plpgsql as $$
declare
  own int;
begin
  select s.slot into own from millrace.tenant_slot s where s.queue_id = slot_of.queue and s.tenant = slot_of.tenant;
  if found then
    return own;
  end if;
  -- A paused tenant gets a slot that plain claims do not look into.
  update millrace.queue q set first_tenant = slot_of.tenant where q.id = slot_of.queue and q.first_tenant is null
    and not exists (select from millrace.tenant t where t.name = slot_of.tenant and t.paused_at is not null);
  own := case when found then 0 else nextval('millrace.tenant_slot_seq') end;
  insert into millrace.tenant_slot (queue_id, slot, tenant) values (slot_of.queue, own, slot_of.tenant)
  on conflict do nothing;
  if found and own > 0 then
    update millrace.queue q set fair = true where q.id = slot_of.queue and not q.fair;
    perform pg_notify(millrace.channel(), 'queues');
  end if;
  select s.slot into own from millrace.tenant_slot s where s.queue_id = slot_of.queue and s.tenant = slot_of.tenant;
  return own;
end $$;

-- Called with the first key of a queue.
create function millrace.use_lanes(queue int) returns void language plpgsql as $$
begin
  update millrace.queue q set laned = true where q.id = use_lanes.queue and not q.laned;
  perform pg_notify(millrace.channel(), 'queues') where found;
end $$;

create function millrace.is_controlled(q millrace.queue) returns boolean language sql stable as $$
  select q.fair or q.laned or q.ageing_step_ms is not null or q.concurrency is not null
    or q.throttle_starts is not null or exists (
      select from millrace.tenant t where t.paused_at is not null and (not q.fairness
        or exists (select from millrace.tenant_slot s where s.queue_id = q.id and s.tenant = t.name)
        or exists (select from millrace.trigger r where r.job_queue_id = q.id and r.tenant = t.name)))
$$;

-- What runs in a controlled queue, by lane: derived from claim rows, so that nothing can leak.
create function millrace.held_lanes(queue int) returns table (lane int, job_id uuid, claim_id uuid)
language sql stable rows 100 as $$
  select x.lane, x.id, c.id from millrace.claim c
  cross join lateral unnest(c.job_ids, c.lanes) x (id, lane)
  cross join lateral (select from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1) held
  where c.queue_id = queue
$$;

-- How many may start before N starts lie in a window; when there are none, when that changes.
create function millrace.throttle_gate(queue int, lane int, most int, window_ms int, at timestamptz,
  out room int, out free_at timestamptz) language plpgsql stable as $$
declare
  slice_ms bigint := ceil(window_ms / 10.0);
  now_slice bigint := floor(extract(epoch from at) * 1000)::bigint / slice_ms;
begin
  select most - coalesce(sum(c.starts), 0) into room from millrace.start_count c
  where c.queue_id = throttle_gate.queue and c.lane = throttle_gate.lane and c.slice >= now_slice - 10;
  if room < 1 then
    select to_timestamp((max(s.slice) + 11) * slice_ms / 1000.0) into free_at from (
      select c.slice, sum(c.starts) over (order by c.slice desc) as later from millrace.start_count c
      where c.queue_id = throttle_gate.queue and c.lane = throttle_gate.lane and c.slice >= now_slice - 10
    ) s where s.later >= most;
  end if;
end $$;

-- The two places that say why something may not start: the claim asks them, and so does explain.
create function millrace.queue_gate(q millrace.queue, held int, at timestamptz,
  out reason text, out room int, out free_at timestamptz) language plpgsql stable as $$
declare
  throttle record;
begin
  room := 2147483647;
  reason := case when not q.is_active then 'queue_inactive' when q.paused_at is not null then 'queue_paused'
    when held >= q.concurrency then 'concurrency' end;
  if reason is not null then
    room := 0;
    return;
  end if;
  room := least(room, q.concurrency - held);
  if q.throttle_starts is not null then
    throttle := millrace.throttle_gate(q.id, 0, q.throttle_starts, q.throttle_ms, at);
    if throttle.room < 1 then
      reason := 'throttle';
      free_at := throttle.free_at;
    end if;
    room := least(room, greatest(0, throttle.room));
  end if;
end $$;

-- One SELECT that returns rows, so that the claim's plan takes it in: it is asked for every lane. Each part has a LIMIT,
-- so that its condition is asked first.
create function millrace.lane_gate(q millrace.queue, lane int, held int, at timestamptz)
returns table (reason text, room int, free_at timestamptz) language sql stable rows 1 as $$
  select g.reason, case when g.reason is null then g.room else 0 end, g.free_at from (
    select case
        when lane_gate.lane <= 0 then null
        when lane_gate.lane % 2 = 0 and held >= (q).key_concurrency then 'key_concurrency'
        when lane_gate.lane % 2 = 1 and held > 0 then 'order_running'
        when retry.due_at is not null then 'order_retrying'
        when dead.yes then 'order_dead'
        when throttle.room < 1 then 'key_throttle'
      end as reason,
      least(case when lane_gate.lane > 0 and lane_gate.lane % 2 = 1 then 1
        when lane_gate.lane > 0 then coalesce((q).key_concurrency - held, 2147483647) else 2147483647 end,
        throttle.room) as room,
      coalesce(retry.due_at, throttle.free_at) as free_at
    from (values (true)) one (row)
    left join lateral (
      select s.due_at from millrace.scheduled_job s
      where s.queue_id = (q).id and s.lane = lane_gate.lane and s.lane > 1 and s.claim_no > 0 and lane_gate.lane % 2 = 1
      order by s.due_at limit 1) retry on true
    left join lateral (
      select true as yes from millrace.dead_job d
      where (q).dead_blocks_key and d.queue_id = (q).id and d.lane = lane_gate.lane and d.lane > 1 and d.state = 'dead'
        and d.reprocessed_as is null and lane_gate.lane % 2 = 1 limit 1) dead on true
    left join lateral (
      select t.room, t.free_at from millrace.throttle_gate(
        (q).id, lane_gate.lane, (q).key_throttle_starts, (q).key_throttle_ms, lane_gate.at) t
      where (q).key_throttle_starts is not null and lane_gate.lane > 0 limit 1) throttle on true
  ) g
$$;

-- The function for other languages, once more: with keys, and with a slot for each tenant.
drop function millrace.enqueue(text, jsonb, text, text, text, interval, int, text, text, int, interval);
create function millrace.enqueue(type text, payload jsonb, queue text default 'default', tenant text default 'default',
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
    insert into millrace.unique_name (scope, key, job_id) values ('ref:' || target.id, enqueue.reference, new_id)
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
