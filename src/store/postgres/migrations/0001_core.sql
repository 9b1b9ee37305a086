-- The durable core. Why it looks like this: docs/design/storage.md.
-- `millrace` stands for the configured schema and is rendered when the migration runs.

create table millrace.queue (
  id int generated always as identity primary key,
  tenant text not null default '', -- '' is a queue that all tenants share
  name text not null,
  description text,
  is_active boolean not null default true,
  paused_at timestamptz,
  max_attempts smallint check (max_attempts between 1 and 1000),
  enforce_unique_reference boolean not null default false,
  capacity int check (capacity >= 0),
  warn_depth int check (warn_depth >= 0),
  retention_days smallint not null default 30 check (retention_days between 1 and 3650),
  key_ttl_seconds int not null default 2592000 check (key_ttl_seconds > 0),
  fair boolean not null default false,
  limits json,
  external_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (tenant, name)
);

-- One number per flush; a job's seq is that number × 1024 + its place in the flush.
create sequence millrace.flush_seq;

-- Ready and running jobs only. A job is ready while claim_id is null; a claim changes nothing indexed.
create table millrace.job (
  id uuid primary key,
  seq bigint not null,
  claim_id uuid,
  started_at timestamptz,
  created_at timestamptz not null,
  ready_at timestamptz not null,
  expires_at timestamptz,
  queue_id int not null,
  tenant_slot int not null default 0,
  lane int not null default 0, -- 0, a positive hash of the ordering or limit key, or −1 for suspects
  claim_no int not null default 0,
  max_runtime_ms int,
  weight smallint not null,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  crash_count smallint not null default 0,
  cancel_requested boolean not null default false,
  type text not null,
  tenant text not null,
  payload json not null,
  correlation_id text, -- null: the id
  idempotency_key text, -- null: the id
  reference text,
  meta json,
  timeline json
) with (
  fillfactor = 50,
  toast_tuple_target = 600,
  vacuum_truncate = false,
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0
);
alter table millrace.job alter column payload set storage external;
create index job_claim on millrace.job (queue_id, weight, tenant_slot, lane, seq);
create index job_expiry on millrace.job (expires_at) where expires_at is not null;

-- Delayed and retrying jobs, apart from the hot table, by due time.
create table millrace.scheduled_job (
  id uuid primary key,
  due_at timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  queue_id int not null,
  tenant_slot int not null default 0,
  lane int not null default 0,
  claim_no int not null default 0,
  max_runtime_ms int,
  weight smallint not null,
  attempt smallint not null default 0,
  max_attempts smallint not null,
  crash_count smallint not null default 0,
  type text not null,
  tenant text not null,
  payload json not null,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json
) with (vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
alter table millrace.scheduled_job alter column payload set storage external;
create index scheduled_job_due on millrace.scheduled_job (due_at);
create index scheduled_job_expiry on millrace.scheduled_job (expires_at) where expires_at is not null;

create table millrace.dead_job (
  id uuid primary key,
  state text not null default 'dead' check (state in ('dead', 'discarded')),
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  expires_at timestamptz,
  queue_id int not null,
  claim_id uuid,
  claim_no int not null,
  max_runtime_ms int,
  weight smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  crash_count smallint not null,
  type text not null,
  tenant text not null,
  worker text,
  payload json not null,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  error_class text not null,
  error_fingerprint text not null,
  error_message text not null,
  error_stack text,
  reprocessed_as uuid,
  closed_at timestamptz,
  closed_reason text
);
create index dead_job_tenant on millrace.dead_job (tenant, finished_at);
create index dead_job_queue on millrace.dead_job (queue_id, state, finished_at);
create index dead_job_fingerprint on millrace.dead_job (error_fingerprint, finished_at);
create index dead_job_correlation on millrace.dead_job (correlation_id) where correlation_id is not null;

-- What has ended otherwise, by retention class and day of the end.
create table millrace.history (
  id uuid not null,
  state text not null,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  claim_id uuid,
  queue_id int not null,
  claim_no int not null,
  retention_days smallint not null,
  weight smallint not null,
  attempt smallint not null,
  max_attempts smallint not null,
  crash_count smallint not null,
  type text not null,
  tenant text not null,
  worker text,
  payload json not null,
  result json,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  closed_reason text,
  reprocessed_as uuid
) partition by list (retention_days);
create index history_id on millrace.history (id);
create index history_correlation on millrace.history (correlation_id) where correlation_id is not null;
-- Where there is one tenant only, a list by tenant is a list by queue: then this index costs nothing.
create index history_tenant on millrace.history (tenant, finished_at) where tenant <> 'default';
create index history_queue on millrace.history (queue_id, state, finished_at);

-- Attaching (not CREATE … PARTITION OF) leaves readers and writers of the parent undisturbed.
create function millrace.attach_history(retention smallint, first_day date, days int)
returns int language plpgsql as $$
declare
  class_table text := format('history_%s', retention);
  day_table text;
  day date;
  attached int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('millrace.attach_history', 0));
  if to_regclass(format('millrace.%I', class_table)) is null then
    execute format(
      'create table millrace.%I (like millrace.history including defaults including storage including constraints) partition by range (finished_at)',
      class_table);
    execute format('alter table millrace.history attach partition millrace.%I for values in (%s)', class_table, retention);
  end if;
  for day in select first_day + n from generate_series(0, days - 1) n loop
    day_table := format('%s_%s', class_table, to_char(day, 'YYYYMMDD'));
    if to_regclass(format('millrace.%I', day_table)) is null then
      execute format(
        'create table millrace.%I (like millrace.%I including defaults including storage including constraints) with (toast_tuple_target = 600, autovacuum_vacuum_insert_scale_factor = 1)',
        day_table, class_table);
      execute format('alter table millrace.%I alter column payload set storage external', day_table);
      execute format(
        'alter table millrace.%I attach partition millrace.%I for values from (%L) to (%L)',
        class_table, day_table, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
      attached := attached + 1;
    end if;
  end loop;
  return attached;
end $$;

-- A worker process's right to hold jobs, renewed in this one row.
create table millrace.lease (
  id uuid primary key,
  worker text not null,
  started_at timestamptz not null default now(),
  renewed_at timestamptz not null default now(),
  expires_at timestamptz not null,
  info json
) with (fillfactor = 50);

-- One row per taking of a batch: what replay, lapse, cancel and maxRuntime read.
create table millrace.claim (
  id uuid primary key,
  lease_id uuid, -- null: a robot's claim, which has an expiry of its own
  created_at timestamptz not null default now(),
  deadline timestamptz,
  expires_at timestamptz,
  job_ids uuid[] not null,
  cancels uuid[]
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
alter table millrace.claim alter column job_ids set storage external;
create index claim_lease on millrace.claim (lease_id);

-- Names that must be unique, because jobs move between tables: given idempotency keys and references.
create table millrace.unique_name (
  scope text not null,
  key text not null,
  job_id uuid not null,
  request_hash bytea,
  expires_at timestamptz,
  primary key (scope, key)
);
create index unique_name_job on millrace.unique_name (job_id);

-- The last flush of each producing process: makes an ambiguous commit exactly resolvable.
create table millrace.producer (
  id uuid primary key,
  flush_no bigint not null,
  seen_at timestamptz not null default now()
) with (fillfactor = 50);

-- Counts by queue, process and minute, written with each flush; sums replace scans.
create table millrace.queue_count (
  queue_id int not null,
  process uuid not null,
  minute timestamptz not null,
  enqueued bigint not null default 0,
  completed bigint not null default 0,
  dead bigint not null default 0,
  removed bigint not null default 0,
  retried bigint not null default 0,
  primary key (queue_id, process, minute)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

create table millrace.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  target text not null,
  reason text,
  details json
);
