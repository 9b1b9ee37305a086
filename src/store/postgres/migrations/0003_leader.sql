-- The office of leader, and what its services need. Why it looks like this: docs/design/leadership.md.

-- One row. The term is the key: an election changes it and waits for whoever writes under it (FOR KEY
-- SHARE); a renewal changes only the expiry and waits for nobody.
create table millrace.leader (
  term bigint primary key,
  holder uuid,
  elected_at timestamptz,
  expires_at timestamptz not null,
  only_row boolean not null default true unique check (only_row)
) with (fillfactor = 50);
insert into millrace.leader (term, expires_at) values (0, '-infinity');

-- Workers whose lease lapsed, for those who ask what became of them.
create table millrace.dead_worker (
  lease_id uuid primary key,
  worker text not null,
  started_at timestamptz not null,
  renewed_at timestamptz not null,
  expires_at timestamptz not null,
  info json
);
create index dead_worker_expiry on millrace.dead_worker (expires_at);

create index unique_name_expiry on millrace.unique_name (expires_at) where expires_at is not null;

-- Null: dead letters wait for a person, and a timeline is kept as long as its job.
alter table millrace.queue
  add column dead_retention_days smallint check (dead_retention_days between 1 and 3650),
  add column timeline_retention_days smallint check (timeline_retention_days between 1 and 3650);

-- Only of what did not complete at the first try.
create index history_timeline on millrace.history (queue_id, finished_at) where timeline is not null;
