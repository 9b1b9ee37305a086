-- Enqueueing from other languages, in their own transactions. Documented in docs/guides/jobs.md.
-- Every refusal has an SQLSTATE (MR400, MR409, MR413, MR429) and a message that begins with the code
-- the TypeScript client throws.

-- JSON with sorted keys, letter by letter as src/client/new-job.ts writes it: one idempotency key
-- then means one request in every language.
create function millrace.canonical_json(value jsonb)
returns text language plpgsql immutable parallel safe as $$
declare
  shortest text;
  size numeric;
begin
  case jsonb_typeof(value)
    when 'object' then
      -- JavaScript puts whole numbers before all other keys, and sorts by UTF-16, where characters
      -- from U+E000 to U+FFFF come last of all.
      return '{' || coalesce((
        select string_agg(to_json(e.key)::text || ':' || millrace.canonical_json(e.value), ',' order by
          case when e.key ~ '^(0|[1-9][0-9]{0,9})$' and e.key::bigint < 4294967295 then e.key::bigint end
            nulls last,
          regexp_replace(e.key, '([\uE000-\uFFFF])', chr(1114111) || '\1', 'g') collate "C")
        from jsonb_each(value) e), '') || '}';
    when 'array' then
      return '[' || coalesce((
        select string_agg(millrace.canonical_json(e.value), ',' order by e.place)
        from jsonb_array_elements(value) with ordinality e (value, place)), '') || ']';
    when 'string' then
      return to_json(value #>> '{}')::text;
    when 'number' then
      shortest := (value #>> '{}')::float8::text;
      size := abs(shortest::numeric);
      if size = 0 then
        return '0';
      elsif size >= 1e-6 and size < 1e21 then
        return trim_scale(shortest::numeric)::text;
      end if;
      return regexp_replace(shortest, 'e([+-])0+', 'e\1');
    else
      return value::text;
  end case;
end $$;

create function millrace.new_job_id()
returns uuid language sql volatile as $$
  -- UUIDv7: milliseconds first, then what is random in a UUIDv4.
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;

create function millrace.check_enqueue(
  names text[], payload jsonb, delay interval, priority int, max_attempts int, expires_in interval
)
returns void language plpgsql as $$
declare
  wrong text := case
    when exists (select from unnest(names) n where n = '' or length(n) > 200 or n ~ '[[:cntrl:]]')
      then 'type, queue, tenant, key, reference and correlation_id have 1 to 200 printable characters'
    when names[1] is null or names[2] is null or names[3] is null
      then 'type, queue and tenant must not be null'
    when priority is null or priority not between -100 and 100
      then 'priority is a weight from -100 to 100'
    when max_attempts not between 1 and 1000 then 'max_attempts is a number from 1 to 1000'
    when delay < interval '0' or delay > interval '100 years'
      then 'delay must not be negative or longer than 100 years'
    when expires_in < interval '1 ms' or expires_in > interval '100 years'
      then 'expires_in is between 1 ms and 100 years'
  end;
begin
  if wrong is not null then
    raise exception using errcode = 'MR400', message = 'OPTION_INVALID: ' || wrong;
  end if;
  if octet_length(payload::text) > 262144 then
    raise exception using errcode = 'MR413',
      message = format('PAYLOAD_TOO_LARGE: the payload has %s of at most 262144 bytes', octet_length(payload::text));
  end if;
  if jsonb_path_exists(payload, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")') then
    wrong := 'it is nested too deeply';
  elsif jsonb_path_exists(payload, 'strict $.** ? (@.type() == "number") ? (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308)') then
    wrong := 'it has a number that JavaScript cannot hold';
  elsif jsonb_path_exists(payload, 'strict $.** ? (@.type() == "object").keyvalue() ? (@.key == "__proto__" || @.key == "constructor" || @.key == "prototype")') then
    wrong := 'it has a key that is reserved by JavaScript';
  end if;
  if wrong is not null then
    raise exception using errcode = 'MR400', message = 'PAYLOAD_INVALID: the payload is refused: ' || wrong;
  end if;
end $$;

create function millrace.ensure_queue(name text)
returns millrace.queue language plpgsql as $$
#variable_conflict use_column
declare
  found_queue millrace.queue;
begin
  select * into found_queue from millrace.queue q where q.tenant = '' and q.name = ensure_queue.name;
  if not found then
    insert into millrace.queue (tenant, name) values ('', ensure_queue.name) on conflict (tenant, name) do nothing;
    select * into found_queue from millrace.queue q where q.tenant = '' and q.name = ensure_queue.name;
  end if;
  if found_queue.id is null then
    raise exception using errcode = 'serialization_failure', message = 'the queue was made by a concurrent transaction';
  end if;
  if not found_queue.is_active then
    raise exception using errcode = 'MR409', message = format('QUEUE_INACTIVE: queue "%s" does not accept jobs', name);
  end if;
  return found_queue;
end $$;

create function millrace.enqueue(
  type text,
  payload jsonb,
  queue text default 'default',
  tenant text default 'default',
  key text default null,
  delay interval default null,
  priority int default 5, -- the weight: high 0, normal 5, low 10
  reference text default null,
  correlation_id text default null,
  max_attempts int default null,
  expires_in interval default null
)
returns uuid language plpgsql as $$
#variable_conflict use_column
declare
  new_id uuid := millrace.new_job_id();
  body jsonb := coalesce(enqueue.payload, 'null');
  due timestamptz := case when enqueue.delay > interval '0' then now() + enqueue.delay end;
  expiry timestamptz := now() + enqueue.expires_in;
  target millrace.queue;
  attempts smallint;
  request bytea;
  owner record;
  depth bigint;
  channel text;
begin
  perform millrace.check_enqueue(
    array[enqueue.type, enqueue.queue, enqueue.tenant, enqueue.key, enqueue.reference, enqueue.correlation_id],
    body, enqueue.delay, enqueue.priority, enqueue.max_attempts, enqueue.expires_in);
  target := millrace.ensure_queue(enqueue.queue);
  attempts := coalesce(enqueue.max_attempts, target.max_attempts, 5);

  if enqueue.key is not null then
    request := sha256(convert_to(millrace.canonical_json(
      jsonb_build_array(enqueue.type, enqueue.queue, enqueue.tenant, body)), 'UTF8'));
    insert into millrace.unique_name as n (scope, key, job_id, request_hash, expires_at)
    values ('key:' || enqueue.tenant, enqueue.key, new_id, request, now() + target.key_ttl_seconds * interval '1 s')
    on conflict (scope, key) do update
      set job_id = excluded.job_id, request_hash = excluded.request_hash, expires_at = excluded.expires_at
      where n.expires_at < now();
    if not found then
      select n.job_id, n.request_hash into owner from millrace.unique_name n
      where n.scope = 'key:' || enqueue.tenant and n.key = enqueue.key;
      if owner.request_hash = request then
        return owner.job_id;
      end if;
      raise exception using errcode = 'MR409', detail = owner.job_id::text,
        message = format('IDEMPOTENCY_CONFLICT: the idempotency key of this %s belongs to a different request', enqueue.type);
    end if;
  end if;

  if enqueue.reference is not null and target.enforce_unique_reference then
    insert into millrace.unique_name (scope, key, job_id) values ('ref:' || target.id, enqueue.reference, new_id)
    on conflict (scope, key) do nothing;
    if not found then
      raise exception using errcode = 'MR409', message = 'REFERENCE_TAKEN: the reference is already used in this queue';
    end if;
  end if;

  if target.capacity is not null then
    select coalesce(sum(c.enqueued - c.completed - c.dead - c.removed), 0) into depth
    from millrace.queue_count c where c.queue_id = target.id;
    if depth >= target.capacity then
      raise exception using errcode = 'MR429',
        message = format('QUEUE_FULL: queue "%s" holds %s of %s jobs; 1 more does not fit', enqueue.queue, depth, target.capacity);
    end if;
  end if;

  if due is null then
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload,
      expires_at, correlation_id, idempotency_key, reference, meta)
    values (new_id, nextval('millrace.flush_seq') * 1024, now(), now(), target.id, enqueue.priority, attempts,
      enqueue.type, enqueue.tenant, body::json, expiry, enqueue.correlation_id, enqueue.key, enqueue.reference,
      '{"source":"sql"}');
  else
    insert into millrace.scheduled_job (id, due_at, created_at, queue_id, weight, max_attempts, type, tenant, payload,
      expires_at, correlation_id, idempotency_key, reference, meta)
    values (new_id, due, now(), target.id, enqueue.priority, attempts,
      enqueue.type, enqueue.tenant, body::json, expiry, enqueue.correlation_id, enqueue.key, enqueue.reference,
      '{"source":"sql"}');
  end if;
  insert into millrace.queue_count (queue_id, process, minute, enqueued)
  values (target.id, gen_random_uuid(), date_trunc('minute', now()), 1);

  -- The configured schema may have any name, and the channel is named after it.
  select 'millrace_' || s.nspname into channel
  from pg_class t join pg_namespace s on s.oid = t.relnamespace where t.oid = 'millrace.job'::regclass;
  perform pg_notify(channel, case when due is null then 'late ' || target.id
    else 'due ' || round(extract(epoch from enqueue.delay) * 1000)::bigint end);
  return new_id;
end $$;
