-- Claiming in controlled queues: see docs/design/flow-control.md. The pure rules beside it are domain/fairness.ts,
-- domain/ageing.ts and domain/throttle.ts.

create function millrace.queue_weights(queue int) returns setof smallint language sql stable rows 3 as $$
  with recursive head (weight) as (
    select (select j.weight from millrace.job j where j.queue_id = queue order by j.weight limit 1)
    union all
    select (select j.weight from millrace.job j where j.queue_id = queue and j.weight > h.weight order by j.weight limit 1)
    from head h where h.weight is not null
  )
  select weight from head where weight is not null
$$;

-- Tenant slots that hold jobs of a weight, from one on and round, without those of paused tenants.
create function millrace.slots_in_turn(q millrace.queue, p_weight smallint, first int, most int)
returns table (slot int, share int) language plpgsql stable rows 10 as $$
declare
  low int;
  high int;
  got int;
begin
  if not q.fair then
    return query select 0, 1;
    return;
  end if;
  for low, high in values (first, 2147483647), (0, first - 1) loop
    return query with recursive next (slot) as (
      select (select j.tenant_slot from millrace.job j where j.queue_id = q.id and j.weight = p_weight
        and j.tenant_slot >= low and j.tenant_slot <= high order by j.tenant_slot limit 1)
      union all
      select (select j.tenant_slot from millrace.job j where j.queue_id = q.id and j.weight = p_weight
        and j.tenant_slot > n.slot and j.tenant_slot <= high order by j.tenant_slot limit 1)
      from next n where n.slot is not null
    )
    select n.slot, coalesce(t.weight, 1) from next n
    left join millrace.tenant_slot s on s.queue_id = q.id and s.slot = n.slot
    left join millrace.tenant t on t.name = s.tenant
    where n.slot is not null and t.paused_at is null limit most;
    get diagnostics got = row_count;
    most := most - got;
    exit when most <= 0;
  end loop;
end $$;

-- What a claim may take of a weight at the earliest: jobs without a key are compared by it.
create function millrace.oldest_ready(q millrace.queue, p_weight smallint, p_types text[], p_paused text[], at timestamptz)
returns timestamptz language sql stable as $$
  select min(h.ready_at) from millrace.slots_in_turn(q, p_weight, 0, 1000) s cross join lateral (
    select j.ready_at from millrace.job j
    where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = s.slot and j.lane >= 0 and j.claim_id is null
      and (j.expires_at is null or j.expires_at > at) and (p_types is null or j.type = any (p_types))
      and (p_paused is null or j.tenant <> all (p_paused))
    order by j.lane, j.seq limit 1) h
$$;

-- Jobs of one weight and tenant slot that may start now, at most p_room. Keys take turns, from behind the last one on.
create function millrace.pick_lanes(q millrace.queue, p_weight smallint, p_slot int, p_room int, p_before timestamptz,
  p_types text[], p_suspect boolean, p_paused text[], weights smallint[], held jsonb, at timestamptz)
returns table (tid tid, suspect boolean) language plpgsql rows 100 as $$
declare
  start int;
  last int;
  low int;
  high int;
  got int;
  seen record;
begin
  return query select j.ctid, j.lane = -1 from (values (-1, 1), (0, p_room)) l (lane, most) cross join lateral (
    select j.ctid, j.lane from millrace.job j
    where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot and j.lane = l.lane
      and j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
      and (p_types is null or j.type = any (p_types)) and (p_paused is null or j.tenant <> all (p_paused))
    order by j.seq limit l.most) j where p_suspect or j.lane = 0 limit p_room;
  get diagnostics got = row_count;
  p_room := p_room - got;
  if p_room <= 0 or not q.laned then
    return;
  end if;
  start := coalesce((select c.lane from millrace.lane_cursor c
    where c.queue_id = q.id and c.weight = p_weight and c.slot = p_slot), 0);
  for low, high in values (start, 2147483647), (0, start) loop
    -- Streamed: what lies behind the last one wanted is not looked at. Lanes that are blocked come without a job.
    for seen in with recursive visit (lane, n) as (
      select (select j.lane from millrace.job j where j.queue_id = q.id and j.weight = p_weight
        and j.tenant_slot = p_slot and j.lane > low and j.lane <= high order by j.lane limit 1), 1
      union all
      select (select j.lane from millrace.job j where j.queue_id = q.id and j.weight = p_weight
        and j.tenant_slot = p_slot and j.lane > v.lane and j.lane <= high order by j.lane limit 1), v.n + 1
      from visit v where v.lane is not null and v.n < 4 * p_room + 256
    )
    select v.lane, h.tid, h.crash_count > 0 as suspect from visit v
    cross join lateral millrace.lane_gate(q, v.lane, coalesce((held ->> v.lane::text)::int, 0), at) g
    left join lateral (
      select * from (
        select j.ctid as tid, j.crash_count, j.type, j.tenant, j.seq from millrace.job j
        where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot and j.lane = v.lane
          and j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
          and (v.lane % 2 = 1 or ((p_types is null or j.type = any (p_types)) and (p_suspect or j.crash_count = 0)))
        order by j.seq limit least(g.room, p_room)) h
      where (p_types is null or h.type = any (p_types)) and (p_suspect or h.crash_count = 0)
        and (p_paused is null or h.tenant <> all (p_paused))
        and (v.lane % 2 = 0 or cardinality(weights) = 1 or not exists (
          select from millrace.job o
          where o.queue_id = q.id and o.weight = any (weights) and o.tenant_slot = p_slot and o.lane = v.lane
            and o.seq < h.seq and (o.expires_at is null or o.expires_at > at)))
    ) h on true where v.lane is not null loop
      last := seen.lane;
      if seen.tid is not null then
        tid := seen.tid;
        suspect := seen.suspect;
        return next;
        p_room := p_room - 1;
      end if;
      exit when p_room <= 0;
    end loop;
    exit when p_room <= 0;
  end loop;
  if last is not null then
    insert into millrace.lane_cursor as c values (q.id, p_weight, p_slot, last)
    on conflict (queue_id, weight, slot) do update set lane = excluded.lane;
  end if;
end $$;

-- What was claimed counts from now on: by lane, and by the clock where starts are throttled.
create function millrace.note_starts(q millrace.queue, started int[], held jsonb, at timestamptz)
returns jsonb language plpgsql as $$
declare
  ms bigint := floor(extract(epoch from at) * 1000);
begin
  insert into millrace.start_count as c (queue_id, lane, slice, starts, expires_at)
  select q.id, s.lane, ms / ceil(s.window_ms / 10.0)::bigint, s.starts, at + 2 * s.window_ms * interval '1 ms' from (
    select 0 as lane, q.throttle_ms as window_ms, cardinality(started) as starts where q.throttle_starts is not null
    union all
    select l.lane, q.key_throttle_ms, count(*)::int from unnest(started) l (lane)
    where q.key_throttle_starts is not null and l.lane > 0 group by l.lane) s
  on conflict (queue_id, lane, slice) do update set starts = c.starts + excluded.starts;
  return held || (
    select coalesce(jsonb_object_agg(l.lane, l.n + coalesce((held ->> l.lane::text)::int, 0)), '{}')
    from (select x.lane, count(*) as n from unnest(started) x (lane) group by x.lane) l);
end $$;

-- Claims a batch of a controlled queue. The first row is about the queue: the ids in the order in which they were
-- taken, what holds it back and until when, and whether others wait.
create function millrace.claim_lanes(p_claim uuid, p_lease uuid, p_queue int, p_most int, p_types text[], p_suspect boolean)
returns table (id uuid, claim_no int, type text, queue_id int, tenant text, attempt smallint, max_attempts smallint,
  crash_count smallint, payload json, created_at float8, started_at float8, weight smallint, seq float8, rare json,
  tid tid) language plpgsql as $$
#variable_conflict use_column
declare
  q millrace.queue;
  at timestamptz;
  gate record;
  held jsonb := '{}';
  paused text[];
  weights smallint[];
  open smallint[];
  w smallint;
  before timestamptz;
  room int;
  turn int := 0;
  rounds int;
  slots int[];
  shares int[];
  quotas int[];
  left_slots int[];
  left_shares int[];
  current int;
  credit int;
  got record;
  got_any boolean;
  ids uuid[] := '{}';
  tids tid[] := '{}';
  lanes int[] := '{}';
  turns int[] := '{}';
  deadline timestamptz;
begin
  insert into millrace.queue_turn values (p_queue) on conflict do nothing;
  perform from millrace.queue_turn t where t.queue_id = p_queue for update;
  at := clock_timestamp();
  select * into q from millrace.queue x where x.id = p_queue;
  paused := (select array_agg(t.name) from millrace.tenant t where t.paused_at is not null);
  -- Whole claims are at least what is held of them: far below the limit, that is enough to know.
  if q.laned or p_most > q.concurrency - (
      select coalesce(sum(cardinality(c.job_ids)), 0) from millrace.claim c where c.queue_id = p_queue) then
    select coalesce(jsonb_object_agg(h.lane, h.n), '{}') into held
    from (select x.lane, count(*) as n from millrace.held_lanes(p_queue) x group by x.lane) h;
  end if;
  gate := millrace.queue_gate(q, (select coalesce(sum(e.value::int), 0)::int from jsonb_each_text(held) e), at);
  room := least(p_most, gate.room);
  weights := array(select x from millrace.queue_weights(p_queue) x);
  open := weights;
  while room > 0 and cardinality(open) > 0 loop
    w := open[1];
    before := 'infinity';
    if q.ageing_step_ms is not null and cardinality(open) > 1 then
      select h.weight, coalesce(h.next - h.weight * q.ageing_step_ms * interval '1 ms', 'infinity') into w, before from (
        select a.weight, a.due, lead(a.due) over (order by a.due) as next from (
          select x.weight, x.weight * q.ageing_step_ms * interval '1 ms'
            + coalesce(millrace.oldest_ready(q, x.weight, p_types, paused, at), 'infinity') as due
          from unnest(open) x (weight)) a
      ) h order by h.due limit 1;
    end if;
    current := null;
    credit := 0;
    select c.slot, c.credit into current, credit from millrace.slot_cursor c where c.queue_id = p_queue and c.weight = w;
    select array_agg(x.slot), array_agg(x.share) into slots, shares
    from millrace.slots_in_turn(q, w, coalesce(current + case when credit > 0 then 0 else 1 end, 0), room + 32) x;
    if slots[1] is distinct from current then
      credit := 0;
    end if;
    got_any := false;
    while room > 0 and cardinality(slots) > 0 loop
      rounds := greatest(1, room / (select sum(x) from unnest(shares) x));
      quotas := array(select rounds * x.share from unnest(shares) with ordinality x (share, i) order by x.i);
      if credit > 0 then
        quotas[1] := quotas[1] - greatest(0, shares[1] - credit);
      end if;
      -- One visit after the other until there is no room: the limit ends it. No condition but these on the rows that were
      -- picked: with the queue's id the plan was seen to walk through the whole queue.
      with picked as materialized (
        select p.tid, p.suspect, row_number() over (partition by p.suspect) as nth
        from unnest(slots, quotas) with ordinality v (slot, quota, i) cross join lateral millrace.pick_lanes(
          q, w, v.slot, least(room, v.quota), before, p_types, p_suspect, paused, weights, held, at) p limit room
      ), taken as (
        update millrace.job j set claim_id = p_claim, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = at
        where j.ctid = any (array(select x.ctid from millrace.job x
          where x.ctid = any (array(select p.tid from picked p where not p.suspect or p.nth = 1))
            and x.claim_id is null for update skip locked))
        returning j.id, j.ctid as tid, j.tenant_slot, j.lane, j.crash_count, j.seq, j.max_runtime_ms
      ), placed as (
        select t.*, v.i, turn + (row_number() over (partition by v.i order by t.seq) - 1)::int / v.share as turn
        from taken t join unnest(slots, shares) with ordinality v (slot, share, i) on v.slot = t.tenant_slot
      )
      select count(*)::int as n, array_agg(t.id order by t.i, t.seq) as ids, array_agg(t.tid order by t.i, t.seq) as tids,
        array_agg(t.lane order by t.i, t.seq) as lanes, array_agg(t.turn order by t.i, t.seq) as turns,
        bool_or(t.crash_count > 0) as suspect, at + min(t.max_runtime_ms) * interval '1 ms' as deadline,
        array(select coalesce(c.n, 0) from generate_subscripts(slots, 1) g (i)
          left join (select x.i, count(*)::int as n from placed x group by x.i) c on c.i = g.i order by g.i) as by_slot
      into got from placed t;
      if got.n > 0 then
        got_any := true;
        ids := ids || got.ids;
        tids := tids || got.tids;
        lanes := lanes || got.lanes;
        turns := turns || got.turns;
        deadline := least(deadline, got.deadline);
        p_suspect := p_suspect and not got.suspect;
        if q.laned or q.throttle_starts is not null then
          held := millrace.note_starts(q, got.lanes, held, at);
        end if;
      end if;
      left_slots := '{}';
      left_shares := '{}';
      for i in 1 .. cardinality(slots) loop
        current := slots[i];
        credit := 0;
        if got.by_slot[i] >= least(room, quotas[i]) then
          left_slots := left_slots || slots[i];
          left_shares := left_shares || shares[i];
          credit := least(shares[i], quotas[i] - got.by_slot[i]);
        end if;
        room := room - got.by_slot[i];
        exit when room <= 0;
        credit := 0;
      end loop;
      turn := turn + rounds;
      slots := left_slots;
      shares := left_shares;
    end loop;
    if q.fair and current is not null then
      insert into millrace.slot_cursor as c values (p_queue, w, current, coalesce(credit, 0))
      on conflict (queue_id, weight) do update set slot = excluded.slot, credit = excluded.credit;
    end if;
    if before = 'infinity' or not got_any then
      open := array_remove(open, w);
    end if;
  end loop;
  if cardinality(ids) > 0 then
    insert into millrace.claim (id, lease_id, deadline, job_ids, queue_id, lanes)
    values (p_claim, p_lease, deadline, ids, p_queue, lanes);
  end if;
  return query select null::uuid, null::int, null, p_queue, null, null::smallint, null::smallint, null::smallint,
    json_build_object('reason', gate.reason, 'freeMs', extract(epoch from gate.free_at - at) * 1000,
      -- Because it may not start, that is: what has just come is announced.
      'waiting', (gate.room < p_most or q.laned or paused is not null) and cardinality(ids) < p_most and exists (
        select from millrace.job j where j.queue_id = p_queue and j.claim_id is null),
      'order', (select string_agg(x.id::text, ',' order by x.turn, x.place)
        from unnest(ids, turns) with ordinality x (id, turn, place))),
    null::float8, null::float8, null::smallint, null::float8, null::json, null::tid;
  return query select j.id, j.claim_no, j.type, j.queue_id, j.tenant, j.attempt, j.max_attempts, j.crash_count, j.payload,
    date_part('epoch', j.created_at), date_part('epoch', j.started_at), j.weight, j.seq::float8,
    case when num_nonnulls(j.max_runtime_ms, j.correlation_id, j.idempotency_key, j.reference, j.meta, j.timeline) > 0
      then json_build_array(j.max_runtime_ms, j.correlation_id, j.idempotency_key, j.reference, j.meta, j.timeline) end,
    j.ctid
  from millrace.job j where j.ctid = any (tids) and j.claim_id = p_claim;
end $$;
