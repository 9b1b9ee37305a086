-- What the HTTP service needs. Why it looks like this: docs/design/http.md.

create table millrace.api_key (
  id uuid primary key,
  tenant text, -- null: of all tenants
  name text not null,
  role text not null check (role in ('producer', 'robot', 'staff', 'manager', 'admin')),
  -- SHA-256 of the secret; the secret itself is nowhere.
  secret_hash bytea not null check (length(secret_hash) = 32),
  old_secret_hash bytea check (length(old_secret_hash) = 32),
  old_secret_until timestamptz,
  rate_limit int check (rate_limit > 0), -- requests per second; null: as the server says
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  created_at timestamptz not null default now()
);

-- A robot's claim: one item, an expiry of its own, and whose it is.
alter table millrace.claim
  add column robot text,
  add column holder uuid;

-- What a robot said when it failed.
alter table millrace.dead_job
  add column exception_type text check (exception_type in ('application', 'business')),
  add column result json;

-- A deleted queue keeps its row, without its name, so that nothing points into the void.
alter table millrace.queue add column deleted_at timestamptz;

-- Search: only what was given a reference or a correlation, or belongs to a named tenant, pays for it.
create index job_reference on millrace.job (reference) where reference is not null;
create index scheduled_job_reference on millrace.scheduled_job (reference) where reference is not null;
create index dead_job_reference on millrace.dead_job (reference) where reference is not null;
create index history_reference on millrace.history (reference) where reference is not null;
create index job_correlation on millrace.job (correlation_id) where correlation_id is not null;
create index scheduled_job_correlation on millrace.scheduled_job (correlation_id) where correlation_id is not null;
create index job_tenant on millrace.job (tenant, id) where tenant <> 'default';
create index scheduled_job_tenant on millrace.scheduled_job (tenant, id) where tenant <> 'default';
create index dead_job_tenant_id on millrace.dead_job (tenant, id) where tenant <> 'default';
create index history_tenant_id on millrace.history (tenant, id) where tenant <> 'default';

-- Failed items by kind, and completed ones that were deleted since: sums of a few rows, never a scan.
create table millrace.item_tally (
  queue_id int not null,
  bucket int not null,
  failed bigint not null default 0,
  business bigint not null default 0,
  done_deleted bigint not null default 0,
  primary key (queue_id, bucket)
) with (fillfactor = 50);

create function millrace.is_business(exception_type text, result json, error_message text)
returns boolean language sql immutable parallel safe as $$
  select case when exception_type is not null then exception_type = 'business'
    else concat_ws(' ', case when json_typeof(result) = 'object' then
      concat_ws(' ', result->>'failure_reason', result->>'reason', result->>'type', result->>'error_message') end,
      error_message) ilike '%business%' end
$$;

create function millrace.tally_dead() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    insert into millrace.item_tally as t (queue_id, bucket, failed, business)
    select queue_id, pg_backend_pid() % 16, -count(*),
      -count(*) filter (where millrace.is_business(exception_type, result, error_message))
    from before where state = 'dead' group by queue_id order by queue_id
    on conflict (queue_id, bucket) do update
      set failed = t.failed + excluded.failed, business = t.business + excluded.business;
  end if;
  if tg_op <> 'DELETE' then
    insert into millrace.item_tally as t (queue_id, bucket, failed, business)
    select queue_id, pg_backend_pid() % 16, count(*),
      count(*) filter (where millrace.is_business(exception_type, result, error_message))
    from after where state = 'dead' group by queue_id order by queue_id
    on conflict (queue_id, bucket) do update
      set failed = t.failed + excluded.failed, business = t.business + excluded.business;
  end if;
  return null;
end $$;
create trigger tally_insert after insert on millrace.dead_job
  referencing new table as after for each statement execute function millrace.tally_dead();
create trigger tally_update after update on millrace.dead_job
  referencing old table as before new table as after for each statement execute function millrace.tally_dead();
create trigger tally_delete after delete on millrace.dead_job
  referencing old table as before for each statement execute function millrace.tally_dead();
insert into millrace.item_tally (queue_id, bucket, failed, business)
  select queue_id, 0, count(*), count(*) filter (where millrace.is_business(null, null, error_message))
  from millrace.dead_job where state = 'dead' group by queue_id;

-- Only updates of history come here, and those are repairs; completions insert.
create function millrace.tally_history() returns trigger language plpgsql as $$
begin
  insert into millrace.item_tally as t (queue_id, bucket, done_deleted)
  select b.queue_id, pg_backend_pid() % 16, count(*)
  from before b join after a on a.id = b.id
  where b.state = 'completed' and a.state <> 'completed' group by b.queue_id order by b.queue_id
  on conflict (queue_id, bucket) do update set done_deleted = t.done_deleted + excluded.done_deleted;
  return null;
end $$;
create trigger tally_update after update on millrace.history
  referencing old table as before new table as after for each statement execute function millrace.tally_history();

-- The audit trail is a chain: each entry's hash covers the one before. The head is locked until the
-- commit, so the order of the numbers is the order of the commits.
alter table millrace.audit
  add column tenant text, -- null: nobody's in particular
  add column no bigint unique,
  add column hash bytea;
create index audit_tenant on millrace.audit (tenant, no) where tenant is not null;

create table millrace.audit_head (
  only_row boolean primary key default true check (only_row),
  no bigint not null,
  hash bytea not null
) with (fillfactor = 50);
insert into millrace.audit_head (no, hash) values (0, decode(repeat('00', 32), 'hex'));

-- Each field with its length in bytes, so that no two entries read alike.
create function millrace.audit_text(fields text[])
returns text language sql immutable parallel safe as $$
  select string_agg(coalesce(octet_length(convert_to(field, 'UTF8')) || ':' || field, '-'), ',' order by place)
  from unnest(fields) with ordinality f (field, place)
$$;

create function millrace.chain_audit() returns trigger language plpgsql as $$
begin
  update millrace.audit_head h set no = h.no + 1, hash = sha256(h.hash || convert_to(millrace.audit_text(array[
      (h.no + 1)::text, to_char(new.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), new.tenant,
      new.actor, new.action, new.target, new.reason, new.details::text]), 'UTF8'))
  returning h.no, h.hash into new.no, new.hash;
  return new;
end $$;

do $$
declare
  entry record;
begin
  for entry in select * from millrace.audit order by id loop
    update millrace.audit_head h set no = h.no + 1, hash = sha256(h.hash || convert_to(millrace.audit_text(array[
      (h.no + 1)::text, to_char(entry.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), entry.tenant,
      entry.actor, entry.action, entry.target, entry.reason, entry.details::text]), 'UTF8'));
    update millrace.audit a set no = h.no, hash = h.hash from millrace.audit_head h where a.id = entry.id;
  end loop;
end $$;
alter table millrace.audit alter column no set not null, alter column hash set not null;

create trigger chain before insert on millrace.audit for each row execute function millrace.chain_audit();

create function millrace.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit trail is append-only' using errcode = 'MR403';
end $$;
create trigger append_only before update or delete on millrace.audit
  for each row execute function millrace.refuse_change();
create trigger append_only_truncate before truncate on millrace.audit
  for each statement execute function millrace.refuse_change();
