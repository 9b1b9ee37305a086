-- The claim that goes with 0023.

-- Claims a batch of a controlled queue. The first row is about the queue: what holds it back and until when, and
-- whether others wait. The others are the jobs, in the order in which they were taken.
create or replace function millrace.claim_lanes(p_claim uuid, p_lease uuid, p_queue int, p_most int, p_types text[], p_suspect boolean,
  p_tenant text default null)
returns table (id uuid, claim_no int, type text, queue_id int, tenant text, attempt smallint, max_attempts smallint,
  crash_count smallint, payload json, created_at float8, started_at float8, weight smallint, seq float8, rare json,
  tid tid) language plpgsql as $$
#variable_conflict use_column
declare
  q millrace.queue;
  at timestamptz;
  gate record;
  held jsonb;
  held_jobs int := 0;
  picked tid[];
  own_slot int;
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
  n int;
  passed boolean;
begin
  perform from millrace.queue_turn t where t.queue_id = p_queue for update;
  if not found then
    insert into millrace.queue_turn values (p_queue) on conflict do nothing;
    perform from millrace.queue_turn t where t.queue_id = p_queue for update;
  end if;
  at := clock_timestamp();
  select * into q from millrace.queue x where x.id = p_queue;
  paused := (select array_agg(t.name) from millrace.tenant t where t.paused_at is not null);
  weights := array(select x from millrace.queue_weights(p_queue) x);
  -- Whole claims are at least what is held of them: far below the limit, that is enough to know. Lanes of one weight
  -- show what is held of them as they are visited.
  if (q.laned and cardinality(weights) > 1) or p_most > q.concurrency - (
      select coalesce(sum(cardinality(c.job_ids)), 0) from millrace.claim c where c.queue_id = p_queue) then
    select coalesce(jsonb_object_agg(h.lane, h.n), '{}'), coalesce(sum(h.n), 0)::int into held, held_jobs
    from (select x.lane, count(*) as n from millrace.held_lanes(p_queue) x group by x.lane) h;
  end if;
  gate := millrace.queue_gate(q, held_jobs, at);
  if p_tenant is not null then
    own_slot := (select s.slot from millrace.tenant_slot s where s.queue_id = p_queue and s.tenant = p_tenant);
  end if;
  room := least(p_most, gate.room);
  -- One weight and one slot, as most queues have them: one round, and its rows go straight to the caller.
  if not q.fair and q.key_throttle_starts is null and cardinality(weights) <= 1 then
    if room > 0 and cardinality(weights) = 1 then
      w := weights[1];
      if q.laned then
        select array_agg(p.tid) filter (where p.tid is not null and (not p.suspect or p.nth = 1)),
          bool_or(p.suspect) filter (where p.tid is null) into picked, passed from (
          select p.tid, p.suspect, row_number() over (partition by p.tid is null, p.suspect) as nth from millrace.pick_lanes(
            q, w, 0, room, 'infinity', p_types, p_suspect, paused, weights, held, at, p_tenant) p) p;
      else
        picked := array(
          select j.tid from (values (-1, 1), (0, room)) l (lane, most) cross join lateral (
            select x.ctid as tid from millrace.job x
            where x.queue_id = p_queue and x.weight = w and x.tenant_slot = 0 and x.lane = l.lane
              and x.claim_id is null and (x.expires_at is null or x.expires_at > at)
              and (p_types is null or x.type = any (p_types)) and (paused is null or x.tenant <> all (paused))
              and (p_tenant is null or x.tenant = p_tenant)
            order by x.seq limit l.most) j where p_suspect or l.lane = 0 limit room);
      end if;
    end if;
    n := coalesce(cardinality(picked), 0);
    return query select null::uuid, null::int, null, p_queue, null, null::smallint, null::smallint, null::smallint,
      json_build_object('reason', gate.reason, 'freeMs', extract(epoch from gate.free_at - at) * 1000, 'passed', passed,
        -- Because it may not start, that is: what has just come is announced.
        'waiting', (gate.room < p_most or q.laned or paused is not null) and n < p_most and n < (select count(*) from (
          select from millrace.job j where j.queue_id = p_queue and j.claim_id is null limit n + 1) x)),
      null::float8, null::float8, null::smallint, null::float8, null::json, null::tid;
    if n > 0 then
      return query with taken as (
        update millrace.job j set claim_id = p_claim, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = at
        where j.ctid = any (array(select x.ctid from millrace.job x
          where x.ctid = any (picked) and x.claim_id is null for update skip locked))
        returning j.*, j.ctid as tid
      ), kept as (
        insert into millrace.claim (id, lease_id, deadline, job_ids, queue_id, lanes)
        select p_claim, p_lease, at + min(t.max_runtime_ms) * interval '1 ms', array_agg(t.id order by t.seq), p_queue,
          array_agg(t.lane order by t.seq)
        from taken t having count(*) > 0
      )
      select t.id, t.claim_no, t.type, t.queue_id, t.tenant, t.attempt, t.max_attempts, t.crash_count, t.payload,
        date_part('epoch', t.created_at), date_part('epoch', t.started_at), t.weight, t.seq::float8,
        case when num_nonnulls(t.max_runtime_ms, t.correlation_id, t.idempotency_key, t.reference, t.meta, t.timeline) > 0
          then json_build_array(t.max_runtime_ms, t.correlation_id, t.idempotency_key, t.reference, t.meta, t.timeline) end,
        t.tid
      from taken t order by t.seq;
      get diagnostics n = row_count;
      if n > 0 and q.throttle_starts is not null then
        perform millrace.note_starts(q, array_fill(0, array[n]), '{}', at);
      end if;
    end if;
    return;
  end if;
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
    from millrace.slots_in_turn(q, w, coalesce(current + case when credit > 0 then 0 else 1 end, 0),
      case when p_tenant is null then room + 32 else 2147483647 end) x
    where p_tenant is null or x.slot = 0 or x.slot = own_slot;
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
      -- One visit after the other until there is no room: the limit ends it. Of suspects only the first.
      if q.laned then
        select (array_agg(p.tid) filter (where p.tid is not null and (not p.suspect or p.nth = 1)))[1:room],
          coalesce(bool_or(p.suspect) filter (where p.tid is null) or passed, passed,
            bool_or(p.suspect) filter (where p.tid is null)) into picked, passed from (
          select p.tid, p.suspect, row_number() over (partition by p.tid is null, p.suspect) as nth
          from unnest(slots, quotas) v (slot, quota) cross join lateral millrace.pick_lanes(q, w, v.slot,
            least(room, v.quota), before, p_types, p_suspect, paused, weights, held, at, p_tenant) p
          limit room + cardinality(slots)) p;
      else
        select array_agg(p.tid) filter (where not p.suspect or p.nth = 1) into picked from (
          select p.tid, p.suspect, row_number() over (partition by p.suspect) as nth
          from unnest(slots, quotas) v (slot, quota) cross join lateral (
            select j.tid, l.lane = -1 as suspect from (values (-1), (0)) l (lane) cross join lateral (
              select x.ctid as tid from millrace.job x
              where x.queue_id = p_queue and x.weight = w and x.tenant_slot = v.slot and x.lane = l.lane
                and x.claim_id is null and x.ready_at <= before and (x.expires_at is null or x.expires_at > at)
                and (p_types is null or x.type = any (p_types)) and (paused is null or x.tenant <> all (paused))
                and (p_tenant is null or x.tenant = p_tenant)
              order by x.seq limit case when l.lane = 0 then least(room, v.quota) else 1 end) j
            where p_suspect or l.lane = 0 limit least(room, v.quota)) p limit room) p;
      end if;
      -- No condition but these on the rows that were picked: with the queue's id the plan was seen to walk through the
      -- whole queue.
      with taken as (
        update millrace.job j set claim_id = p_claim, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = at
        where j.ctid = any (array(select x.ctid from millrace.job x
          where x.ctid = any (picked) and x.claim_id is null for update skip locked))
        returning j.id, j.ctid as tid, j.tenant_slot, j.lane, j.crash_count, j.seq, j.max_runtime_ms
      ), placed as (
        select t.*, v.i, turn + (row_number() over (partition by v.i order by t.seq) - 1)::int / v.share as turn
        from taken t join unnest(slots, shares) with ordinality v (slot, share, i) on v.slot = t.tenant_slot
      )
      select count(*)::int as n, array_agg(t.id) as ids, array_agg(t.tid) as tids, array_agg(t.lane) as lanes,
        array_agg(t.turn) as turns, bool_or(t.crash_count > 0) as suspect, at + min(t.max_runtime_ms) * interval '1 ms' as deadline,
        array(select coalesce(c.n, 0) from generate_subscripts(slots, 1) g (i)
          left join (select x.i, count(*)::int as n from placed x group by x.i) c on c.i = g.i order by g.i) as by_slot
      into got from (select * from placed p order by p.i, p.seq) t;
      if got.n > 0 then
        got_any := true;
        ids := ids || got.ids;
        tids := tids || got.tids;
        lanes := lanes || got.lanes;
        turns := turns || got.turns;
        deadline := least(deadline, got.deadline);
        p_suspect := p_suspect and not got.suspect;
        -- Where starts are counted, and where there is a next round that must know of these.
        if q.throttle_starts is not null or q.key_throttle_starts is not null or (q.laned and got.n < room) then
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
    if q.fair and current is not null and p_tenant is null then
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
    json_build_object('reason', gate.reason, 'freeMs', extract(epoch from gate.free_at - at) * 1000, 'passed', passed,
      -- Because it may not start, that is: what has just come is announced.
      'waiting', (gate.room < p_most or q.laned or paused is not null) and cardinality(ids) < p_most and exists (
        select from millrace.job j where j.queue_id = p_queue and j.claim_id is null)),
    null::float8, null::float8, null::smallint, null::float8, null::json, null::tid;
  return query select j.id, j.claim_no, j.type, j.queue_id, j.tenant, j.attempt, j.max_attempts, j.crash_count, j.payload,
    date_part('epoch', j.created_at), date_part('epoch', j.started_at), j.weight, j.seq::float8,
    case when num_nonnulls(j.max_runtime_ms, j.correlation_id, j.idempotency_key, j.reference, j.meta, j.timeline) > 0
      then json_build_array(j.max_runtime_ms, j.correlation_id, j.idempotency_key, j.reference, j.meta, j.timeline) end,
    x.tid
  from unnest(tids, turns) with ordinality x (tid, turn, place)
  cross join lateral (select * from millrace.job j where j.ctid = x.tid and j.claim_id = p_claim limit 1) j
  order by x.turn, x.place;
end $$;
