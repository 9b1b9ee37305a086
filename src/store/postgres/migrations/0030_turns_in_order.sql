-- A claim that goes on with somebody's visit gave that tenant a whole one in the order of its jobs, although it counted
-- what was left of it: others came later than the bound says.

do $$
begin
  execute replace(pg_get_functiondef('millrace.claim_lanes'::regproc),
    $before$turn + (row_number() over (partition by v.i order by t.seq) - 1)::int / v.share as turn$before$,
    $after$turn + (row_number() over (partition by v.i order by t.seq) - 1
            + case when v.i = 1 and credit > 0 then greatest(0, v.share - credit) else 0 end)::int / v.share as turn$after$);
end $$;
