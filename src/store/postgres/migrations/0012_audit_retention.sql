-- The beginning of the trail may go once the trail itself says so: an entry `audit_pruned` tells through
-- which entry, and that one's hash, from which the rest can still be verified.
create index audit_pruned on millrace.audit (no) where action = 'audit_pruned';

create or replace function millrace.refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.no <= (
    select (p.details->>'through')::bigint from millrace.audit p where p.action = 'audit_pruned'
    order by p.no desc limit 1
  ) then
    return old;
  end if;
  raise exception 'the audit trail is append-only' using errcode = 'MR403';
end $$;
