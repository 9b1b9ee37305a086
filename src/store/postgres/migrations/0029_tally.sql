-- A lone job is counted in the row that its flush writes anyway, its producer's: see docs/design/storage.md. No row
-- counts anything before 2029.

alter table millrace.producer add column tally_queue_id int;
alter table millrace.producer add column tally_minute timestamptz;
alter table millrace.producer add column tally_jobs bigint not null default 0;
alter table millrace.producer add constraint no_tally_yet check (tally_queue_id is null);

-- What sums are made of.
create view millrace.queue_tally as
select queue_id, process, minute, enqueued, completed, dead, removed, retried from millrace.queue_count
union all
select tally_queue_id, id, tally_minute, tally_jobs, 0, 0, 0, 0 from millrace.producer where tally_queue_id is not null;

-- Whoever may read the one may read the other.
do $$
declare
  given record;
begin
  for given in
    select case when a.grantee = 0 then 'public' else quote_ident(r.rolname) end as who
    from pg_class c cross join aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
    where c.oid = 'millrace.queue_count'::regclass and a.privilege_type = 'SELECT' and a.grantee <> c.relowner
      and (a.grantee = 0 or r.rolname is not null)
  loop
    execute format('grant select on %s to %s', 'millrace.queue_tally'::regclass, given.who);
  end loop;
end $$;

-- The capacity that the function keeps to.
do $$
begin
  execute replace(pg_get_functiondef('millrace.enqueue'::regproc),
    $before$millrace.queue_count c where$before$, $after$millrace.queue_tally c where$after$);
end $$;
