-- Claiming in controlled queues, for less: see "What it costs" in docs/design/flow-control.md. What is taken, and in which
-- order, is as before.

-- As before, and whoever knows that no key waits for a retry or a dead letter says so: then nothing is looked for.
drop function millrace.lane_gate(millrace.queue, int, int, timestamptz);
create function millrace.lane_gate(q millrace.queue, lane int, held int, at timestamptz,
  p_retries boolean default true, p_dead boolean default true)
returns table (reason text, room int, free_at timestamptz) language sql stable rows 1 as $$
  select g.reason, case when g.reason is null then g.room else 0 end, g.free_at from (
    select case
        when lane_gate.lane <= 0 then null
        when lane_gate.lane % 2 = 0 and held >= (q).key_concurrency then 'key_concurrency'
        when lane_gate.lane % 2 = 1 and held > 0 then 'order_running'
        when retry.due_at is not null then 'order_retrying'
        when dead.yes then 'order_dead'
        when throttle.room < 1 then 'key_throttle'
      end as reason,
      least(case when lane_gate.lane > 0 and lane_gate.lane % 2 = 1 then 1
        when lane_gate.lane > 0 then coalesce((q).key_concurrency - held, 2147483647) else 2147483647 end,
        throttle.room) as room,
      coalesce(retry.due_at, throttle.free_at) as free_at
    from (values (true)) one (row)
    left join lateral (
      select s.due_at from millrace.scheduled_job s
      where p_retries and s.queue_id = (q).id and s.lane = lane_gate.lane and s.lane > 1 and s.claim_no > 0
        and lane_gate.lane % 2 = 1
      order by s.due_at limit 1) retry on true
    left join lateral (
      select true as yes from millrace.dead_job d
      where p_dead and (q).dead_blocks_key and d.queue_id = (q).id and d.lane = lane_gate.lane and d.lane > 1
        and d.state = 'dead' and d.reprocessed_as is null and lane_gate.lane % 2 = 1 limit 1) dead on true
    left join lateral (
      select t.room, t.free_at from millrace.throttle_gate(
        (q).id, lane_gate.lane, (q).key_throttle_starts, (q).key_throttle_ms, lane_gate.at) t
      where (q).key_throttle_starts is not null and lane_gate.lane > 0 limit 1) throttle on true
  ) g
$$;

create function millrace.count_held(queue int) returns jsonb language sql stable as $$
  select coalesce(jsonb_object_agg(h.lane, h.n), '{}')
  from (select x.lane, count(*) as n from millrace.held_lanes(queue) x group by x.lane) h
$$;

-- What may start of one tenant's rows of one weight. `held` says how many of each lane run; without it that is counted
-- in the rows as they are visited. What runs, what waits for a retry and what is dead
-- is seen in one snapshot: a job that is put off meanwhile is never seen in neither place.
-- A row without an address says that lanes are left to be visited, and whether the last one was passed on the way.
create or replace function millrace.pick_lanes(q millrace.queue, p_weight smallint, p_slot int, p_room int, p_before timestamptz,
  p_types text[], p_suspect boolean, p_paused text[], weights smallint[], held jsonb, at timestamptz, p_tenant text)
returns table (tid tid, suspect boolean) language plpgsql rows 100 as $$
declare
  start int;
  last int;
  low int;
  high int;
  got int;
  most int;
  lanes_left int;
  stretch record;
  seen record;
  visited int;
  of_claims jsonb;
  free boolean;
  passed boolean := false;
begin
  return query select j.ctid, j.lane = -1 from (values (-1, 1), (0, p_room)) l (lane, most) cross join lateral (
    select j.ctid, j.lane from millrace.job j
    where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot and j.lane = l.lane
      and j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
      and (p_types is null or j.type = any (p_types)) and (p_paused is null or j.tenant <> all (p_paused))
      and (p_tenant is null or j.tenant = p_tenant)
    order by j.seq limit l.most) j where p_suspect or j.lane = 0 limit p_room;
  get diagnostics got = row_count;
  p_room := p_room - got;
  if p_room <= 0 or not q.laned then
    return;
  end if;
  start := coalesce((select c.lane from millrace.lane_cursor c
    where c.queue_id = q.id and c.weight = p_weight and c.slot = p_slot), 0);
  lanes_left := 4 * p_room + 256;
  most := p_room + 64;
  for low, high, passed in values (start, 2147483647, false), (0, start, true) loop
    -- Stretches of rows as they lie in the index are cheaper than a search for each lane, unless lanes are deep.
    loop
      with rows as materialized (
        select j.ctid as tid, j.lane, j.seq, j.crash_count, j.type, j.tenant, j.claim_id is not null as claimed,
          j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
            and (p_tenant is null or j.tenant = p_tenant) as ready
        from millrace.job j where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot
          and j.lane > low and j.lane <= high
        order by j.lane, j.seq limit most
      ), span as materialized (
        select count(*)::int as n, count(distinct r.lane)::int as lanes, max(r.lane) as upto,
          exists (select from millrace.scheduled_job s where s.queue_id = q.id and s.lane > 1 and s.claim_no > 0) as retries,
          exists (select from millrace.dead_job d
            where d.queue_id = q.id and d.lane > 1 and d.state = 'dead' and d.reprocessed_as is null) as dead,
          -- The last lane may be seen in part only. Then what its claims hold is at most this.
          case when count(*) = most then (select count(*)::int from millrace.claim c cross join unnest(c.lanes) l (lane)
            where c.queue_id = q.id and l.lane = max(r.lane)) end as cut
        from rows r
      ), running as (
        select r.lane, count(*)::int as n from rows r where held is null and r.claimed group by r.lane
      ), heads as (
        select r.*, row_number() over (partition by r.lane order by r.seq) as nth from rows r
        where r.ready and (r.lane % 2 = 1 or ((p_types is null or r.type = any (p_types))
          and (p_suspect or r.crash_count = 0)))
      ), picked as (
        select h.tid, h.lane, h.seq, h.crash_count > 0 as suspect from (
          select h.*, s.retries, s.dead, case when held is not null then coalesce((held ->> h.lane::text)::int, 0)
            when h.lane = s.upto and s.cut is not null then s.cut else coalesce(o.n, 0) end as held
          from heads h cross join span s left join running o on o.lane = h.lane
          where h.lane % 2 = 0 or h.nth = 1) h
        cross join lateral millrace.lane_gate(q, h.lane, h.held, at, h.retries, h.dead) g
        where h.nth <= g.room and (p_types is null or h.type = any (p_types)) and (p_suspect or h.crash_count = 0)
          and (p_paused is null or h.tenant <> all (p_paused))
          and (h.lane % 2 = 0 or cardinality(weights) = 1 or not exists (
            select from millrace.job o
            where o.queue_id = q.id and o.weight = any (weights) and o.tenant_slot = p_slot and o.lane = h.lane
              and o.seq < h.seq and (o.expires_at is null or o.expires_at > at)))
        order by h.lane, h.seq limit p_room
      )
      select (select s.n from span s) as n, (select s.lanes from span s) as lanes, (select s.upto from span s) as upto,
        max(p.lane) as picked_upto, count(*)::int as picked, array_agg(p.tid) as tids, array_agg(p.suspect) as suspects
      into stretch from picked p;
      if stretch.picked > 0 then
        return query select x.tid, x.suspect from unnest(stretch.tids, stretch.suspects) x (tid, suspect);
        p_room := p_room - stretch.picked;
        last := stretch.picked_upto;
      end if;
      exit when p_room <= 0;
      last := coalesce(stretch.upto, last);
      lanes_left := lanes_left - stretch.lanes;
      exit when stretch.n < most or lanes_left <= 0;
      -- There is more. A lane of which something was taken is not visited again: its room is used.
      low := stretch.upto - case when stretch.upto is distinct from stretch.picked_upto then 1 else 0 end;
      exit when greatest(stretch.lanes, stretch.picked) < most / 4;
    end loop;
    exit when p_room <= 0 or lanes_left <= 0;
    continue when stretch.n < most;
    visited := null;
    -- Lanes of which nothing is claimed, whatever became of the claim's jobs, need no count.
    of_claims := (select jsonb_object_agg(x.lane, true) from (select distinct l.lane from millrace.claim c
      cross join unnest(c.lanes) l (lane) where c.queue_id = q.id) x);
    if held is null and q.key_concurrency is not null then
      held := millrace.count_held(q.id);
    end if;
    -- Streamed: what lies behind the last one wanted is not looked at. Lanes that are blocked come without a job.
    for seen in with recursive visit as (
      (select j.lane, j.ctid as tid, j.seq, j.crash_count, j.type, j.tenant, j.claim_id is not null as claimed,
          j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
            and (p_tenant is null or j.tenant = p_tenant) as ready, 1 as n
        from millrace.job j where j.queue_id = q.id and j.weight = p_weight
          and j.tenant_slot = p_slot and j.lane > low and j.lane <= high order by j.lane, j.seq limit 1)
      union all
      select h.* from visit v cross join lateral (
        select j.lane, j.ctid, j.seq, j.crash_count, j.type, j.tenant, j.claim_id is not null,
          j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
            and (p_tenant is null or j.tenant = p_tenant), v.n + 1
        from millrace.job j where j.queue_id = q.id and j.weight = p_weight
          and j.tenant_slot = p_slot and j.lane > v.lane and j.lane <= high order by j.lane, j.seq limit 1) h
      where v.n < lanes_left
    )
    select v.lane, h.tid, h.crash_count > 0 as suspect,
      v.lane % 2 = 1 and not v.claimed and held is null and of_claims ? v.lane::text as perhaps
    from visit v
    cross join lateral millrace.lane_gate(q, v.lane,
      case when v.lane % 2 = 1 and v.claimed then 1 else coalesce((held ->> v.lane::text)::int, 0) end, at) g
    left join lateral (
      select * from (
        select v.tid, v.crash_count, v.type, v.tenant, v.seq where v.lane % 2 = 1 and v.ready and g.room > 0
        union all
        (select j.ctid, j.crash_count, j.type, j.tenant, j.seq from millrace.job j
        where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot and j.lane = v.lane
          and (v.lane % 2 = 0 or not (v.ready or v.claimed))
          and j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
          and (p_tenant is null or j.tenant = p_tenant)
          and (v.lane % 2 = 1 or ((p_types is null or j.type = any (p_types)) and (p_suspect or j.crash_count = 0)))
        order by j.seq limit least(g.room, p_room))) h
      where (p_types is null or h.type = any (p_types)) and (p_suspect or h.crash_count = 0)
        and (p_paused is null or h.tenant <> all (p_paused))
        and (v.lane % 2 = 0 or cardinality(weights) = 1 or not exists (
          select from millrace.job o
          where o.queue_id = q.id and o.weight = any (weights) and o.tenant_slot = p_slot and o.lane = v.lane
            and o.seq < h.seq and (o.expires_at is null or o.expires_at > at)))
    ) h on true loop
      lanes_left := lanes_left - case when seen.lane is distinct from visited then 1 else 0 end;
      visited := seen.lane;
      free := seen.tid is not null;
      if free and seen.perhaps then
        -- Its claim is there, its head is free: another of its jobs may run, if that came in behind it. Counted first,
        -- asked for afterwards: what is put off between the two is found by the second.
        held := coalesce(held, millrace.count_held(q.id));
        free := exists (
          select from millrace.lane_gate(q, seen.lane, coalesce((held ->> seen.lane::text)::int, 0), at) g where g.room > 0);
      end if;
      if free then
        tid := seen.tid;
        suspect := seen.suspect;
        return next;
        p_room := p_room - 1;
      end if;
      exit when p_room <= 0;
    end loop;
    last := coalesce(visited, last);
    exit when p_room <= 0 or lanes_left <= 0;
  end loop;
  if last is not null then
    insert into millrace.lane_cursor as c values (q.id, p_weight, p_slot, last)
    on conflict (queue_id, weight, slot) do update set lane = excluded.lane;
  end if;
  -- There is room, and there are lanes that were not visited. The next claim goes on where this one ended.
  if p_room > 0 and lanes_left <= 0 then
    tid := null;
    suspect := passed;
    return next;
  end if;
end $$;
