-- Visiting lanes for less: see docs/design/flow-control.md. What is taken, and in which order, is as before. With a
-- tenant's name, of that tenant alone; the next migration makes the claim that asks so.

drop function millrace.claim_lanes(uuid, uuid, int, int, text[], boolean);
drop function millrace.pick_lanes(millrace.queue, smallint, int, int, timestamptz, text[], boolean, text[], smallint[],
  jsonb, timestamptz);

create function millrace.pick_lanes(q millrace.queue, p_weight smallint, p_slot int, p_room int, p_before timestamptz,
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
  for low, high in values (start, 2147483647), (0, start) loop
    -- Stretches of rows as they lie in the index are cheaper than a search for each lane, unless lanes are deep.
    loop
      most := p_room + 64;
      with rows as materialized (
        select j.ctid as tid, j.lane, j.seq, j.crash_count, j.type, j.tenant, j.claim_id is null
            and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
            and (p_tenant is null or j.tenant = p_tenant) as ready
        from millrace.job j where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot
          and j.lane > low and j.lane <= high
        order by j.lane, j.seq limit most
      ), heads as (
        select r.*, row_number() over (partition by r.lane order by r.seq) as nth from rows r
        where r.ready and (r.lane % 2 = 1 or ((p_types is null or r.type = any (p_types))
          and (p_suspect or r.crash_count = 0)))
      ), picked as (
        select h.tid, h.lane, h.seq, h.crash_count > 0 as suspect from (
          select * from heads h where h.lane % 2 = 0 or (h.nth = 1 and not held ? h.lane::text)) h
        cross join lateral millrace.lane_gate(q, h.lane, coalesce((held ->> h.lane::text)::int, 0), at) g
        where h.nth <= g.room and (p_types is null or h.type = any (p_types)) and (p_suspect or h.crash_count = 0)
          and (p_paused is null or h.tenant <> all (p_paused))
          and (h.lane % 2 = 0 or cardinality(weights) = 1 or not exists (
            select from millrace.job o
            where o.queue_id = q.id and o.weight = any (weights) and o.tenant_slot = p_slot and o.lane = h.lane
              and o.seq < h.seq and (o.expires_at is null or o.expires_at > at)))
        order by h.lane, h.seq limit p_room
      )
      select (select count(*)::int from rows) as n, (select count(distinct r.lane)::int from rows r) as lanes,
        (select max(r.lane) from rows r) as upto, max(p.lane) as picked_upto,
        count(*)::int as picked, array_agg(p.tid) as tids, array_agg(p.suspect) as suspects
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
      exit when stretch.lanes < most / 4;
    end loop;
    exit when p_room <= 0 or lanes_left <= 0;
    continue when stretch.n < most;
    -- Streamed: what lies behind the last one wanted is not looked at. Lanes that are blocked come without a job.
    for seen in with recursive visit (lane, n) as (
      select (select j.lane from millrace.job j where j.queue_id = q.id and j.weight = p_weight
        and j.tenant_slot = p_slot and j.lane > low and j.lane <= high order by j.lane limit 1), 1
      union all
      select (select j.lane from millrace.job j where j.queue_id = q.id and j.weight = p_weight
        and j.tenant_slot = p_slot and j.lane > v.lane and j.lane <= high order by j.lane limit 1), v.n + 1
      from visit v where v.lane is not null and v.n < lanes_left
    )
    select v.lane, h.tid, h.crash_count > 0 as suspect from visit v
    cross join lateral millrace.lane_gate(q, v.lane, coalesce((held ->> v.lane::text)::int, 0), at) g
    left join lateral (
      select * from (
        select j.ctid as tid, j.crash_count, j.type, j.tenant, j.seq from millrace.job j
        where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = p_slot and j.lane = v.lane
          and j.claim_id is null and j.ready_at <= p_before and (j.expires_at is null or j.expires_at > at)
          and (p_tenant is null or j.tenant = p_tenant) and (v.lane % 2 = 1 or ((p_types is null or j.type = any (p_types)) and (p_suspect or j.crash_count = 0)))
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
