-- Circuit breakers. Why it looks like this: docs/design/breaker.md.

create table millrace.breaker (
  id int generated always as identity primary key,
  name text not null unique,
  state text not null default 'CLOSED' check (state in ('CLOSED', 'OPEN', 'HALF_OPEN')),
  period int not null default 1, -- one more with each change of state
  failures int not null default 0, -- in a row
  retry_at timestamptz, -- while open: from when on a probe may go out; null: not before somebody closes it
  probes jsonb not null default '{}', -- while half open: id → deadline, in seconds since 1970
  failure_threshold int not null default 5 check (failure_threshold >= 1),
  open_cooldown_seconds float8 not null default 30 check (open_cooldown_seconds > 0),
  half_open_probe_count int not null default 1 check (half_open_probe_count >= 1),
  probe_timeout_seconds float8 not null default 60 check (probe_timeout_seconds > 0),
  return_spread_seconds float8 check (return_spread_seconds >= 0), -- null: as long as the cool-down
  cause text check (cause in ('failures', 'probe', 'manual')), -- of the last change of state
  reason text, -- of the last change by hand
  changed_at timestamptz not null default now(),
  openings int not null default 0,
  last_failure_at timestamptz,
  last_error text,
  created_at timestamptz not null default now()
) with (fillfactor = 50);
