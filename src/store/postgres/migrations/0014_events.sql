-- What has happened, for whoever watches. Why it looks like this: docs/design/events.md.

create table millrace.event (
  id bigint generated always as identity primary key,
  -- Its place among all of them, given after its commit; null: not yet.
  no bigint unique,
  at timestamptz not null default now(),
  kind text not null,
  tenant text, -- null: nobody's in particular
  data json not null
) with (fillfactor = 80);
create index event_without_place on millrace.event (id) where no is null;
create index event_age on millrace.event (at);
create sequence millrace.event_no;

-- The triggers below write for whoever causes an event, whatever else that role may do.
create function millrace.add_event(kind text, tenant text, data json) returns void language sql as $$
  insert into millrace.event (kind, tenant, data) values (kind, nullif(tenant, ''), data)
$$;

-- What comes in numbers is one event for each tenant (and queue) of a statement, with the first ten by
-- name: a thousand jobs that die together are one row.
create function millrace.tell_dead() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into millrace.event (kind, tenant, data)
  select 'job.dead', d.tenant, json_build_object('queue', q.name, 'queue_id', q.id, 'count', count(*), 'jobs',
    json_agg(json_build_object('id', d.id, 'type', d.type, 'error_class', d.error_class) order by d.place)
      filter (where d.place <= 10))
  from (select a.*, row_number() over (partition by a.queue_id, a.tenant order by a.id) as place from after a) d
  join millrace.queue q on q.id = d.queue_id
  where d.state = 'dead' group by d.tenant, q.id, q.name order by q.id, d.tenant;
  return null;
end $$;
create trigger tell_insert after insert on millrace.dead_job
  referencing new table as after for each statement execute function millrace.tell_dead();

create function millrace.tell_repaired() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into millrace.event (kind, tenant, data)
  select d.kind, d.tenant, json_build_object('queue', q.name, 'queue_id', q.id, 'count', count(*), 'jobs',
    json_agg(json_build_object('id', d.id, 'type', d.type, 'new_id', d.reprocessed_as) order by d.place)
      filter (where d.place <= 10))
  from (
    select a.id, a.type, a.tenant, a.queue_id, a.reprocessed_as, k.kind,
      row_number() over (partition by k.kind, a.queue_id, a.tenant order by a.id) as place
    from after a join before b on b.id = a.id
    cross join lateral (select case
      when a.reprocessed_as is distinct from b.reprocessed_as then 'job.reprocessed'
      when a.state = 'discarded' and b.state = 'dead' then 'job.discarded' end as kind) k
    where k.kind is not null
  ) d
  join millrace.queue q on q.id = d.queue_id
  group by d.kind, d.tenant, q.id, q.name order by q.id, d.tenant;
  return null;
end $$;
create trigger tell_update after update on millrace.dead_job
  referencing old table as before new table as after for each statement execute function millrace.tell_repaired();

create function millrace.tell_queue() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform millrace.add_event(case
      when tg_op = 'INSERT' then 'queue.created'
      when new.deleted_at is not null and old.deleted_at is null then 'queue.deleted'
      when new.paused_at is not null and old.paused_at is null then 'queue.paused'
      when new.paused_at is null and old.paused_at is not null then 'queue.resumed'
      else 'queue.changed' end,
    new.tenant, json_build_object('queue', case when tg_op = 'UPDATE' and new.deleted_at is not null then old.name else new.name end,
      'queue_id', new.id, 'is_active', new.is_active, 'paused', new.paused_at is not null));
  return null;
end $$;
create trigger tell_insert after insert on millrace.queue for each row execute function millrace.tell_queue();
-- What the engine notes about a queue by itself leaves updated_at alone.
create trigger tell_update after update on millrace.queue for each row
  when (new.updated_at is distinct from old.updated_at) execute function millrace.tell_queue();

create function millrace.tell_tenant() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform millrace.add_event(case when new.paused_at is null then 'tenant.resumed' else 'tenant.paused' end,
    new.name, json_build_object('tenant', new.name));
  return null;
end $$;
create trigger tell_insert after insert on millrace.tenant for each row
  when (new.paused_at is not null) execute function millrace.tell_tenant();
create trigger tell_update after update on millrace.tenant for each row
  when ((new.paused_at is null) <> (old.paused_at is null)) execute function millrace.tell_tenant();

create function millrace.tell_breaker() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform millrace.add_event(case new.state when 'OPEN' then 'breaker.opened' when 'CLOSED' then 'breaker.closed'
      else 'breaker.half_open' end,
    null, json_build_object('breaker', new.name, 'cause', new.cause, 'failures', new.failures));
  return null;
end $$;
create trigger tell_update after update on millrace.breaker for each row
  when (new.state <> old.state) execute function millrace.tell_breaker();

create function millrace.tell_trigger() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into millrace.event (kind, tenant, data)
  select d.kind, d.tenant, json_build_object('count', count(*), 'triggers',
    json_agg(json_build_object('id', d.id, 'name', d.name, 'failures', d.failures, 'job_id', d.job_id) order by d.place)
      filter (where d.place <= 10))
  from (
    select a.id, a.name, a.tenant, a.failures, k.kind,
      case k.kind when 'trigger.fired' then a.last_job_id end as job_id,
      row_number() over (partition by k.kind, a.tenant order by a.id) as place
    from after a join before b on b.id = a.id
    cross join lateral (select case
      when a.failures > b.failures then 'trigger.failed'
      when a.last_fired_at is distinct from b.last_fired_at then 'trigger.fired' end as kind) k
    where k.kind is not null
  ) d
  group by d.kind, d.tenant order by d.tenant;
  return null;
end $$;
create trigger tell_update after update on millrace.trigger
  referencing old table as before new table as after for each statement execute function millrace.tell_trigger();

create function millrace.tell_webhook() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform millrace.add_event(case when new.failing_since is null then 'webhook.recovered' else 'webhook.failing' end,
    new.tenant, json_build_object('webhook_id', new.id, 'name', new.name));
  return null;
end $$;
create trigger tell_update after update on millrace.webhook for each row
  when ((new.failing_since is null) <> (old.failing_since is null)) execute function millrace.tell_webhook();

create function millrace.tell_leader() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform millrace.add_event('leader.changed', null, json_build_object('term', new.term, 'in_office', new.holder is not null));
  return null;
end $$;
create trigger tell_update after update on millrace.leader for each row
  when (new.term <> old.term or new.holder is distinct from old.holder) execute function millrace.tell_leader();

create function millrace.tell_audit() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform millrace.add_event('audit', new.tenant, json_build_object('no', new.no, 'actor', new.actor,
    'action', new.action, 'target', new.target));
  return null;
end $$;
create trigger tell_insert after insert on millrace.audit for each row execute function millrace.tell_audit();
