-- Triggers, webhooks and keys too are read as the tenant whose key asks: see docs/design/row-security.md.
-- Secrets are not among the columns that the role may read.

create or replace function millrace.secure_rows() returns boolean language plpgsql as $$
declare
  mine text := $own$nullif(current_setting('millrace' || '.tenant', true), '')$own$;
  -- Not in the collation of the indexes: the policy is a filter, and which index is taken is decided by the
  -- statement's own conditions, as it is for everybody else.
  own text := 'tenant collate "C" = ' || mine;
  home text := (select quote_ident(n.nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'millrace.job'::regclass);
  secured record;
begin
  if not exists (select from pg_roles where rolname = 'millrace_tenant') then
    begin
      create role millrace_tenant nologin;
    exception when duplicate_object or unique_violation then null; -- somebody was faster
    end;
  end if;
  if not pg_has_role(current_user, 'millrace_tenant', 'member') then
    execute format('grant millrace_tenant to %I', current_user);
  end if;
  execute format('grant usage on schema %s to millrace_tenant', home);
  for secured in
    select * from (values
      ('job', '', own),
      ('scheduled_job', '', own),
      ('dead_job', '', own),
      ('dead_letter_tally', '', own),
      ('history', '', own),
      ('job_label', '', own),
      ('audit', '', own),
      ('queue', '', format('%s is not null and tenant in ('''', %1$s)', mine)),
      ('unique_name', '(scope, key, job_id)', format('scope = ''key:'' || %s', mine)),
      ('claim', '(id, lease_id, robot, expires_at, job_ids)', format(
        'exists (select from %s.job j where j.id = any (job_ids) and j.claim_id = claim.id)', home)),
      ('lease', '(id, worker, expires_at)', format(
        'exists (select from %s.claim c where c.lease_id = lease.id)', home)),
      ('trigger_batch', '(job_id)', format(
        'exists (select from %s.job j where j.id = trigger_batch.job_id)
          or exists (select from %1$s.scheduled_job j where j.id = trigger_batch.job_id)', home)),
      ('trigger', '', own),
      ('webhook', '(id, tenant, name, url, kinds, queues, is_active, failures, failing_since, last_error, last_failed_at,
        last_delivered_at, created_at)', own),
      ('api_key', '(id, tenant, name, role, rate_limit, expires_at, revoked_at, last_used_at, created_at)', own)
    ) t (name, columns, seen)
  loop
    execute format('grant select %s on %s.%I to millrace_tenant', secured.columns, home, secured.name);
    -- What is secured already is not locked again.
    continue when (select c.relrowsecurity and (select count(*) from pg_policy p
        where p.polrelid = c.oid and p.polname in ('all_rows', 'tenant_rows')) = 2
      from pg_class c where c.oid = format('%s.%I', home, secured.name)::regclass);
    execute format('alter table %s.%I enable row level security', home, secured.name);
    execute format('drop policy if exists all_rows on %s.%I', home, secured.name);
    execute format('drop policy if exists tenant_rows on %s.%I', home, secured.name);
    execute format('create policy all_rows on %s.%I using (true) with check (true)', home, secured.name);
    execute format('create policy tenant_rows on %s.%I as restrictive to millrace_tenant using (%s)',
      home, secured.name, secured.seen);
  end loop;
  return true;
exception when insufficient_privilege or lock_not_available then
  return false; -- nothing of it has happened
end $$;

select millrace.secure_rows();
