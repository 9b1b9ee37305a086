-- What the dead letters add up to, by what people ask for: sums of small rows, never a pass over the letters.
create table millrace.dead_letter_tally (
  tenant text not null,
  queue_id int not null,
  status text not null,
  error_class text not null,
  category text not null, -- '': of none
  fingerprint text not null,
  bucket int not null,
  letters bigint not null,
  primary key (tenant, queue_id, status, error_class, category, fingerprint, bucket)
) with (fillfactor = 50);

create function millrace.dead_letter_status(state text, reprocessed_as uuid)
returns text language sql immutable parallel safe as $$
  select case when state = 'discarded' then 'discarded' when reprocessed_as is not null then 'reprocessed'
    else 'pending_review' end
$$;

create type millrace.dead_letter_change as (
  tenant text, queue_id int, status text, error_class text, category text, fingerprint text, letters bigint
);

create function millrace.add_to_dead_letter_tally(changes millrace.dead_letter_change[])
returns void language sql as $$
  insert into millrace.dead_letter_tally as t (tenant, queue_id, status, error_class, category, fingerprint, bucket, letters)
  select tenant, queue_id, status, error_class, category, fingerprint, pg_backend_pid() % 16, sum(letters)
  from unnest(changes) group by 1, 2, 3, 4, 5, 6 having sum(letters) <> 0 order by 1, 2, 3, 4, 5, 6
  on conflict (tenant, queue_id, status, error_class, category, fingerprint, bucket) do update
    set letters = t.letters + excluded.letters
$$;

create function millrace.tally_dead_letters() returns trigger language plpgsql as $$
declare
  gone millrace.dead_letter_change[];
  come millrace.dead_letter_change[];
begin
  if tg_op <> 'INSERT' then
    gone := array(select row(tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
      coalesce(meta->>'category', ''), error_fingerprint, -count(*))::millrace.dead_letter_change
      from before group by tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
        coalesce(meta->>'category', ''), error_fingerprint);
  end if;
  if tg_op <> 'DELETE' then
    come := array(select row(tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
      coalesce(meta->>'category', ''), error_fingerprint, count(*))::millrace.dead_letter_change
      from after group by tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
        coalesce(meta->>'category', ''), error_fingerprint);
  end if;
  perform millrace.add_to_dead_letter_tally(gone || come);
  return null;
end $$;
create trigger tally_letters_insert after insert on millrace.dead_job
  referencing new table as after for each statement execute function millrace.tally_dead_letters();
create trigger tally_letters_update after update on millrace.dead_job
  referencing old table as before new table as after for each statement execute function millrace.tally_dead_letters();
create trigger tally_letters_delete after delete on millrace.dead_job
  referencing old table as before for each statement execute function millrace.tally_dead_letters();

insert into millrace.dead_letter_tally (tenant, queue_id, status, error_class, category, fingerprint, bucket, letters)
select tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
  coalesce(meta->>'category', ''), error_fingerprint, 0, count(*)
from millrace.dead_job group by 1, 2, 3, 4, 5, 6;
