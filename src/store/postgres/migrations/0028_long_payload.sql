-- Long payloads have a place of their own, where they stay while their jobs move from table to table: see
-- docs/design/storage.md. Text, not json: what was made of a value needs no second look. Nothing is kept here
-- before 1028.

create table millrace.long_payload (
  job_id uuid primary key,
  tenant text not null,
  payload text not null
) with (toast_tuple_target = 8160);
alter table millrace.long_payload alter column payload set storage external;

-- Whoever may do something with jobs may do it with their payloads.
do $$
declare
  given record;
begin
  for given in
    select a.privilege_type as what, case when a.grantee = 0 then 'public' else quote_ident(r.rolname) end as who
    from pg_class c cross join aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
    where c.oid = 'millrace.job'::regclass and a.grantee <> c.relowner and (a.grantee = 0 or r.rolname is not null)
  loop
    execute format('grant %s on %s to %s', given.what, 'millrace.long_payload'::regclass, given.who);
  end loop;
end $$;

-- A tenant reads them as it reads its labels.
do $$
begin
  execute replace(pg_get_functiondef('millrace.secure_rows()'::regprocedure),
    $before$('job_label', '', own),$before$,
    $after$('job_label', '', own),
      ('long_payload', '', own),$after$);
end $$;

select millrace.secure_rows();
