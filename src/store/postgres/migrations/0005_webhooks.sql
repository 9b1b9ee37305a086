-- Who is told of what went wrong, and how. Why it looks like this: docs/design/notifications.md.

create table millrace.webhook (
  id uuid primary key,
  tenant text, -- null: of all tenants
  name text not null,
  url text not null,
  kinds text[] not null,
  queues text[], -- null: all of them
  is_active boolean not null default true,
  -- SHA-256 of the secret, which is what signs; the secret itself is nowhere.
  signing_key bytea not null check (length(signing_key) = 32),
  old_signing_key bytea check (length(old_signing_key) = 32),
  old_signing_key_until timestamptz,
  failures int not null default 0, -- in a row
  failing_since timestamptz,
  last_error text,
  last_failed_at timestamptz,
  last_delivered_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
) with (fillfactor = 70);

-- What has happened and is not on its way yet: written with what it tells of, deleted by the dispatch.
create table millrace.notification (
  id uuid primary key default millrace.new_job_id(),
  kind text not null,
  tenant text, -- null: nobody's in particular
  queue text,
  at timestamptz not null default now(),
  data json not null
);

-- Queues over their warning depth: one row is one crossing.
create table millrace.deep_queue (
  queue_id int primary key,
  since timestamptz not null default now()
);
