// Circuit breakers: one guarded statement per transition. Each locks the row first and decides by what
// it then sees, so reports that come together are applied one after the other. The rules are those of
// domain/circuit-breaker.ts; a test compares the two.

import { statement } from "./statement.ts";

// Both pg_notify calls stand in the answer, because a CTE that only selects is not run. A relapse or a
// probe is not told outside; every change, and the first failure in a row, is told to other processes.
const answer = `raised as (
    insert into millrace.notification (kind, data)
    select told.kind, json_build_object('breaker', c.name, 'cause', c.cause, 'reason', c.reason,
      'failures', c.failures, 'error', case when c.cause = 'manual' then null else c.last_error end)
    from changed c cross join before
    cross join lateral (select 'breaker.' || case c.state when 'CLOSED' then 'closed' else 'opened' end as kind) told
    where (c.state = 'CLOSED') <> (before.state = 'CLOSED')
      and exists (select from millrace.webhook w where w.is_active and told.kind = any (w.kinds))
    returning id
  )
  select c.*, extract(epoch from now())::float8 as now_s, true as took,
    (select pg_notify(@channel, 'breaker ' || c.id)::text
      where c.period <> before.period or c.probes <> before.probes or (c.failures = 0) <> (before.failures = 0)),
    (select pg_notify(@channel, 'notifications')::text from raised having count(*) > 0)
  from changed c cross join before
  union all
  select before.*, extract(epoch from now())::float8, false, null, null
  from before where not exists (select from changed)`;

const locked = `before as materialized (
    select * from millrace.breaker where name = $1::text for update
  )`;

// A probe past its deadline is lost. Asked for again by its own id, one is granted again.
export const askForProbe = statement(
  "ask_for_probe",
  `with ${locked},
  live as materialized (
    select coalesce(jsonb_object_agg(p.key, p.value), '{}') as probes, count(*) as probe_count
    from before cross join lateral jsonb_each(before.probes) p
    where p.key <> $2::text and p.value::text::float8 > extract(epoch from now())
  ),
  changed as (
    update millrace.breaker b set state = 'HALF_OPEN', retry_at = null,
      period = before.period + case before.state when 'OPEN' then 1 else 0 end,
      probes = live.probes
        || jsonb_build_object($2::text, extract(epoch from now()) + before.probe_timeout_seconds),
      cause = case before.state when 'OPEN' then 'probe' else before.cause end,
      reason = case before.state when 'OPEN' then null else before.reason end,
      changed_at = case before.state when 'OPEN' then now() else before.changed_at end
    from before cross join live
    where b.id = before.id and live.probe_count < before.half_open_probe_count
      and (before.state = 'HALF_OPEN' or (before.state = 'OPEN' and before.retry_at <= now()))
    returning b.*
  ),
  ${answer}`,
);

// $2 period, $3 leading, $4 longest, $5 trailing, $6 succeeded, $7 error
export const reportCalls = statement(
  "report_breaker_calls",
  `with ${locked},
  next as (
    select id, greatest(failures + $3::int, $4::int) as longest,
      greatest(failures + $3::int, $4::int) >= failure_threshold as trips
    from before where state = 'CLOSED' and period = $2::int
  ),
  changed as (
    update millrace.breaker b set
      state = case when next.trips then 'OPEN' else 'CLOSED' end,
      period = before.period + next.trips::int,
      failures = case when next.trips then next.longest when $6::boolean then $5::int
        else before.failures + $5::int end,
      retry_at = case when next.trips then now() + before.open_cooldown_seconds * interval '1 s' end,
      cause = case when next.trips then 'failures' else before.cause end,
      reason = case when next.trips then null else before.reason end,
      changed_at = case when next.trips then now() else before.changed_at end,
      openings = before.openings + next.trips::int,
      last_failure_at = case when $4::int > 0 then now() else before.last_failure_at end,
      last_error = coalesce($7::text, before.last_error)
    from before join next on next.id = before.id
    where b.id = before.id
    returning b.*
  ),
  ${answer}`,
);

// $2 period, $3 probe, $4 verdict, $5 error
export const reportProbe = statement(
  "report_breaker_probe",
  `with ${locked},
  changed as (
    update millrace.breaker b set
      state = case $4::text when 'success' then 'CLOSED' when 'failure' then 'OPEN' else 'HALF_OPEN' end,
      period = before.period + case $4::text when 'none' then 0 else 1 end,
      failures = case $4::text when 'success' then 0 else before.failures end,
      retry_at = case $4::text when 'failure' then now() + before.open_cooldown_seconds * interval '1 s' end,
      probes = case $4::text when 'none' then before.probes - $3::text else '{}' end,
      cause = 'probe',
      changed_at = case $4::text when 'none' then before.changed_at else now() end,
      openings = before.openings + case $4::text when 'failure' then 1 else 0 end,
      last_failure_at = case $4::text when 'failure' then now() else before.last_failure_at end,
      last_error = coalesce($5::text, before.last_error)
    from before
    where b.id = before.id and before.state = 'HALF_OPEN' and before.period = $2::int and before.probes ? $3::text
    returning b.*
  ),
  ${answer}`,
);

// $2 open, close or reset, $3 reason, $4 actor
export const changeByHand = statement(
  "change_breaker",
  `with ${locked},
  changed as (
    update millrace.breaker b set
      state = case $2::text when 'open' then 'OPEN' else 'CLOSED' end,
      period = before.period + 1, failures = 0, retry_at = null, probes = '{}',
      cause = 'manual', reason = $3::text, changed_at = now(),
      openings = case $2::text when 'open' then before.openings + 1 when 'reset' then 0 else before.openings end,
      last_failure_at = case $2::text when 'reset' then null else before.last_failure_at end,
      last_error = case $2::text when 'reset' then null else before.last_error end
    from before where b.id = before.id
    returning b.*
  ),
  audited as (
    insert into millrace.audit (actor, action, target, reason, details)
    select $4::text, 'breaker_' || $2::text, c.name, $3::text, json_build_object('from', before.state, 'to', c.state)
    from changed c cross join before
  ),
  ${answer}`,
);

export const listBreakers = statement(
  "list_breakers",
  "select *, extract(epoch from now())::float8 as now_s from millrace.breaker order by name",
);

export const findBreaker = statement(
  "find_breaker",
  "select *, extract(epoch from now())::float8 as now_s from millrace.breaker where name = $1::text",
);

export const createBreaker = statement(
  "create_breaker",
  "insert into millrace.breaker (name) values ($1::text) on conflict (name) do nothing",
);

export const configureBreaker = statement(
  "configure_breaker",
  `with changed as (
    update millrace.breaker b set
      failure_threshold = coalesce(($2::json->>'failureThreshold')::int, b.failure_threshold),
      open_cooldown_seconds = coalesce(($2::json->>'openCooldownSeconds')::float8, b.open_cooldown_seconds),
      half_open_probe_count = coalesce(($2::json->>'halfOpenProbeCount')::int, b.half_open_probe_count),
      probe_timeout_seconds = coalesce(($2::json->>'probeTimeoutSeconds')::float8, b.probe_timeout_seconds),
      return_spread_seconds = case when $2::json->'returnSpreadSeconds' is null then b.return_spread_seconds
        else ($2::json->>'returnSpreadSeconds')::float8 end
    where name = $1::text returning b.*
  )
  select c.*, extract(epoch from now())::float8 as now_s, pg_notify(@channel, 'breaker ' || c.id)::text from changed c`,
);
