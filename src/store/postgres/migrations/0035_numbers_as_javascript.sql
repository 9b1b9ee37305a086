-- Where two numbers are equally near to a decimal, JavaScript writes that one if it is shorter, PostgreSQL a longer one:
-- 1e23 and 40357865665508940 were different requests in SQL and in TypeScript. Only whole numbers from 2^53 on, and
-- none above 1e40, have such a decimal in reach.
create function millrace.number_as_javascript(size numeric)
returns text language plpgsql immutable parallel safe as $$
declare
  digits text := rtrim(size::text, '0');
  unit numeric;
  shorter numeric;
begin
  while length(digits) > 1 loop
    unit := ('1e' || length(size::text) - length(digits) + 1)::numeric;
    select c into shorter from unnest(array[div(size, unit) * unit, (div(size, unit) + 1) * unit]) c
    where c::float8 = size::float8 order by abs(c - size) limit 1;
    exit when not found;
    size := shorter;
    digits := rtrim(size::text, '0');
  end loop;
  if size < 1e21 then
    return size::text;
  end if;
  return left(digits, 1) || regexp_replace(substr(digits, 2), '^(.)', '.\1') || 'e+' || length(size::text) - 1;
end $$;

do $do$
begin
  execute replace(pg_get_functiondef('millrace.canonical_json'::regproc),
    $before$      elsif size >= 1e-6 and size < 1e21 then
$before$,
    $after$      elsif size >= 9007199254740992 and size < 1e40 then
        return repeat('-', (shortest like '-%')::int) || millrace.number_as_javascript(trim_scale(size));
      elsif size >= 1e-6 and size < 1e21 then
$after$);
end $do$;
