-- Rules that create jobs. Why it looks like this: docs/design/triggers.md.

create table millrace.trigger (
  id uuid primary key,
  tenant text not null,
  name text not null,
  type text not null check (type in ('TIME', 'QUEUE')),
  enabled boolean not null default true,
  cron text,
  time_zone text,
  missed_slots text not null default 'skip' check (missed_slots in ('skip', 'last', 'all')),
  max_catch_up int not null default 100 check (max_catch_up between 1 and 1000),
  queue_id int,
  batch_size int not null default 1 check (batch_size between 1 and 1000),
  polling_interval_ms int not null default 30000 check (polling_interval_ms >= 1000),
  on_arrival boolean not null default false,
  job_type text not null,
  job_queue_id int not null,
  job_priority text,
  job_weight smallint not null,
  job_max_attempts smallint,
  job_max_runtime_ms int,
  job_category text,
  payload json not null,
  handled_until timestamptz, -- no slot up to here is looked for again
  last_fired_at timestamptz,
  last_job_id uuid,
  last_processed_item_id uuid,
  next_fire_at timestamptz, -- null: it will not fire
  failures int not null default 0,
  last_error json,
  retry_at timestamptz, -- not before, after a failure
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (tenant, name),
  check (case type when 'TIME' then cron is not null and time_zone is not null else queue_id is not null end)
);
create index trigger_due on millrace.trigger (next_fire_at) where enabled;
create index trigger_arrival on millrace.trigger (queue_id) where enabled and on_arrival;

-- One row per slot that made a job: the second runner to come finds it taken.
create table millrace.trigger_slot (
  trigger_id uuid not null,
  slot_at timestamptz not null,
  job_id uuid not null,
  primary key (trigger_id, slot_at)
);

-- Jobs that hold items of a queue: each item's claim_id is the job's id. Gone when the last was settled.
create table millrace.trigger_batch (
  job_id uuid primary key,
  trigger_id uuid not null,
  created_at timestamptz not null default now()
);
