-- What the migrations make, for review. Written by `npm run schema`, checked by `npm run check`.
-- Not a migration: nothing runs this file. History's daily partitions are left out.

CREATE SEQUENCE millrace.audit_id_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807 OWNED BY millrace.audit.id;

CREATE SEQUENCE millrace.breaker_id_seq AS integer
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 2147483647 OWNED BY millrace.breaker.id;

CREATE SEQUENCE millrace.flush_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807;

CREATE SEQUENCE millrace.queue_id_seq AS integer
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 2147483647 OWNED BY millrace.queue.id;

CREATE TABLE millrace.api_key (
  id uuid NOT NULL,
  tenant text,
  name text NOT NULL,
  role text NOT NULL,
  secret_hash bytea NOT NULL,
  old_secret_hash bytea,
  old_secret_until timestamp with time zone,
  rate_limit integer,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT api_key_old_secret_hash_check CHECK ((length(old_secret_hash) = 32)),
  CONSTRAINT api_key_pkey PRIMARY KEY (id),
  CONSTRAINT api_key_rate_limit_check CHECK ((rate_limit > 0)),
  CONSTRAINT api_key_role_check CHECK ((role = ANY (ARRAY['producer'::text, 'robot'::text, 'staff'::text, 'manager'::text, 'admin'::text]))),
  CONSTRAINT api_key_secret_hash_check CHECK ((length(secret_hash) = 32))
);

CREATE TABLE millrace.audit (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamp with time zone NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  reason text,
  details json,
  tenant text,
  no bigint NOT NULL,
  hash bytea NOT NULL,
  CONSTRAINT audit_no_key UNIQUE (no),
  CONSTRAINT audit_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_tenant ON millrace.audit USING btree (tenant, no) WHERE (tenant IS NOT NULL);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON millrace.audit FOR EACH ROW EXECUTE FUNCTION millrace.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON millrace.audit FOR EACH STATEMENT EXECUTE FUNCTION millrace.refuse_change();
CREATE TRIGGER chain BEFORE INSERT ON millrace.audit FOR EACH ROW EXECUTE FUNCTION millrace.chain_audit();

CREATE TABLE millrace.audit_head (
  only_row boolean NOT NULL DEFAULT true,
  no bigint NOT NULL,
  hash bytea NOT NULL,
  CONSTRAINT audit_head_only_row_check CHECK (only_row),
  CONSTRAINT audit_head_pkey PRIMARY KEY (only_row)
) WITH (fillfactor=50);

CREATE TABLE millrace.breaker (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL,
  state text NOT NULL DEFAULT 'CLOSED'::text,
  period integer NOT NULL DEFAULT 1,
  failures integer NOT NULL DEFAULT 0,
  retry_at timestamp with time zone,
  probes jsonb NOT NULL DEFAULT '{}'::jsonb,
  failure_threshold integer NOT NULL DEFAULT 5,
  open_cooldown_seconds double precision NOT NULL DEFAULT 30,
  half_open_probe_count integer NOT NULL DEFAULT 1,
  probe_timeout_seconds double precision NOT NULL DEFAULT 60,
  return_spread_seconds double precision,
  cause text,
  reason text,
  changed_at timestamp with time zone NOT NULL DEFAULT now(),
  openings integer NOT NULL DEFAULT 0,
  last_failure_at timestamp with time zone,
  last_error text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT breaker_cause_check CHECK ((cause = ANY (ARRAY['failures'::text, 'probe'::text, 'manual'::text]))),
  CONSTRAINT breaker_failure_threshold_check CHECK ((failure_threshold >= 1)),
  CONSTRAINT breaker_half_open_probe_count_check CHECK ((half_open_probe_count >= 1)),
  CONSTRAINT breaker_name_key UNIQUE (name),
  CONSTRAINT breaker_open_cooldown_seconds_check CHECK ((open_cooldown_seconds > (0)::double precision)),
  CONSTRAINT breaker_pkey PRIMARY KEY (id),
  CONSTRAINT breaker_probe_timeout_seconds_check CHECK ((probe_timeout_seconds > (0)::double precision)),
  CONSTRAINT breaker_return_spread_seconds_check CHECK ((return_spread_seconds >= (0)::double precision)),
  CONSTRAINT breaker_state_check CHECK ((state = ANY (ARRAY['CLOSED'::text, 'OPEN'::text, 'HALF_OPEN'::text])))
) WITH (fillfactor=50);

CREATE TABLE millrace.claim (
  id uuid NOT NULL,
  lease_id uuid,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  deadline timestamp with time zone,
  expires_at timestamp with time zone,
  job_ids uuid[] STORAGE EXTERNAL NOT NULL,
  cancels uuid[],
  robot text,
  holder uuid,
  CONSTRAINT claim_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=1000, fillfactor=70);
CREATE INDEX claim_lease ON millrace.claim USING btree (lease_id);

CREATE TABLE millrace.dead_job (
  id uuid NOT NULL,
  state text NOT NULL DEFAULT 'dead'::text,
  created_at timestamp with time zone NOT NULL,
  started_at timestamp with time zone,
  finished_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  queue_id integer NOT NULL,
  claim_id uuid,
  claim_no integer NOT NULL,
  max_runtime_ms integer,
  weight smallint NOT NULL,
  attempt smallint NOT NULL,
  max_attempts smallint NOT NULL,
  crash_count smallint NOT NULL,
  type text NOT NULL,
  tenant text NOT NULL,
  worker text,
  payload json NOT NULL,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  error_class text NOT NULL,
  error_fingerprint text NOT NULL,
  error_message text NOT NULL,
  error_stack text,
  reprocessed_as uuid,
  closed_at timestamp with time zone,
  closed_reason text,
  exception_type text,
  result json,
  CONSTRAINT dead_job_exception_type_check CHECK ((exception_type = ANY (ARRAY['application'::text, 'business'::text]))),
  CONSTRAINT dead_job_pkey PRIMARY KEY (id),
  CONSTRAINT dead_job_state_check CHECK ((state = ANY (ARRAY['dead'::text, 'discarded'::text])))
);
CREATE INDEX dead_job_correlation ON millrace.dead_job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX dead_job_fingerprint ON millrace.dead_job USING btree (error_fingerprint, finished_at);
CREATE INDEX dead_job_queue ON millrace.dead_job USING btree (queue_id, state, finished_at);
CREATE INDEX dead_job_reference ON millrace.dead_job USING btree (reference) WHERE (reference IS NOT NULL);
CREATE INDEX dead_job_tenant ON millrace.dead_job USING btree (tenant, finished_at);
CREATE INDEX dead_job_tenant_id ON millrace.dead_job USING btree (tenant, id) WHERE (tenant <> 'default'::text);
CREATE TRIGGER tally_delete AFTER DELETE ON millrace.dead_job REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead();
CREATE TRIGGER tally_insert AFTER INSERT ON millrace.dead_job REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead();
CREATE TRIGGER tally_update AFTER UPDATE ON millrace.dead_job REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead();

CREATE TABLE millrace.dead_worker (
  lease_id uuid NOT NULL,
  worker text NOT NULL,
  started_at timestamp with time zone NOT NULL,
  renewed_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  info json,
  CONSTRAINT dead_worker_pkey PRIMARY KEY (lease_id)
);
CREATE INDEX dead_worker_expiry ON millrace.dead_worker USING btree (expires_at);

CREATE TABLE millrace.deep_queue (
  queue_id integer NOT NULL,
  since timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT deep_queue_pkey PRIMARY KEY (queue_id)
);

CREATE TABLE millrace.history (
  id uuid NOT NULL,
  state text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  started_at timestamp with time zone,
  finished_at timestamp with time zone NOT NULL,
  claim_id uuid,
  queue_id integer NOT NULL,
  claim_no integer NOT NULL,
  retention_days smallint NOT NULL,
  weight smallint NOT NULL,
  attempt smallint NOT NULL,
  max_attempts smallint NOT NULL,
  crash_count smallint NOT NULL,
  type text NOT NULL,
  tenant text NOT NULL,
  worker text,
  payload json NOT NULL,
  result json,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  closed_reason text,
  reprocessed_as uuid
) PARTITION BY LIST (retention_days);
CREATE INDEX history_correlation ON ONLY millrace.history USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX history_id ON ONLY millrace.history USING btree (id);
CREATE INDEX history_queue ON ONLY millrace.history USING btree (queue_id, state, finished_at);
CREATE INDEX history_reference ON ONLY millrace.history USING btree (reference) WHERE (reference IS NOT NULL);
CREATE INDEX history_tenant ON ONLY millrace.history USING btree (tenant, finished_at) WHERE (tenant <> 'default'::text);
CREATE INDEX history_tenant_id ON ONLY millrace.history USING btree (tenant, id) WHERE (tenant <> 'default'::text);
CREATE INDEX history_timeline ON ONLY millrace.history USING btree (queue_id, finished_at) WHERE (timeline IS NOT NULL);
CREATE TRIGGER tally_update AFTER UPDATE ON millrace.history REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_history();

CREATE TABLE millrace.item_tally (
  queue_id integer NOT NULL,
  bucket integer NOT NULL,
  failed bigint NOT NULL DEFAULT 0,
  business bigint NOT NULL DEFAULT 0,
  done_deleted bigint NOT NULL DEFAULT 0,
  CONSTRAINT item_tally_pkey PRIMARY KEY (queue_id, bucket)
) WITH (fillfactor=50);

CREATE TABLE millrace.job (
  id uuid NOT NULL,
  seq bigint NOT NULL,
  claim_id uuid,
  started_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  ready_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  queue_id integer NOT NULL,
  tenant_slot integer NOT NULL DEFAULT 0,
  lane integer NOT NULL DEFAULT 0,
  claim_no integer NOT NULL DEFAULT 0,
  max_runtime_ms integer,
  weight smallint NOT NULL,
  attempt smallint NOT NULL DEFAULT 0,
  max_attempts smallint NOT NULL,
  crash_count smallint NOT NULL DEFAULT 0,
  cancel_requested boolean NOT NULL DEFAULT false,
  type text NOT NULL,
  tenant text NOT NULL,
  payload json STORAGE EXTERNAL NOT NULL,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  CONSTRAINT job_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=5000, fillfactor=50, toast_tuple_target=600, vacuum_truncate=false);
CREATE INDEX job_claim ON millrace.job USING btree (queue_id, weight, tenant_slot, lane, seq);
CREATE INDEX job_correlation ON millrace.job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX job_expiry ON millrace.job USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX job_reference ON millrace.job USING btree (reference) WHERE (reference IS NOT NULL);
CREATE INDEX job_tenant ON millrace.job USING btree (tenant, id) WHERE (tenant <> 'default'::text);

CREATE TABLE millrace.leader (
  term bigint NOT NULL,
  holder uuid,
  elected_at timestamp with time zone,
  expires_at timestamp with time zone NOT NULL,
  only_row boolean NOT NULL DEFAULT true,
  CONSTRAINT leader_only_row_check CHECK (only_row),
  CONSTRAINT leader_only_row_key UNIQUE (only_row),
  CONSTRAINT leader_pkey PRIMARY KEY (term)
) WITH (fillfactor=50);

CREATE TABLE millrace.lease (
  id uuid NOT NULL,
  worker text NOT NULL,
  started_at timestamp with time zone NOT NULL DEFAULT now(),
  renewed_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL,
  info json,
  CONSTRAINT lease_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);

CREATE TABLE millrace.migration (
  version integer NOT NULL,
  name text NOT NULL,
  applied_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT migration_pkey PRIMARY KEY (version)
);

CREATE TABLE millrace.notification (
  id uuid NOT NULL DEFAULT millrace.new_job_id(),
  kind text NOT NULL,
  tenant text,
  queue text,
  at timestamp with time zone NOT NULL DEFAULT now(),
  data json NOT NULL,
  CONSTRAINT notification_pkey PRIMARY KEY (id)
);

CREATE TABLE millrace.producer (
  id uuid NOT NULL,
  flush_no bigint NOT NULL,
  seen_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT producer_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);

CREATE TABLE millrace.queue (
  id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  tenant text NOT NULL DEFAULT ''::text,
  name text NOT NULL,
  description text,
  is_active boolean NOT NULL DEFAULT true,
  paused_at timestamp with time zone,
  max_attempts smallint,
  enforce_unique_reference boolean NOT NULL DEFAULT false,
  capacity integer,
  warn_depth integer,
  retention_days smallint NOT NULL DEFAULT 30,
  key_ttl_seconds integer NOT NULL DEFAULT 2592000,
  fair boolean NOT NULL DEFAULT false,
  limits json,
  external_id text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  dead_retention_days smallint,
  timeline_retention_days smallint,
  deleted_at timestamp with time zone,
  CONSTRAINT queue_capacity_check CHECK ((capacity >= 0)),
  CONSTRAINT queue_dead_retention_days_check CHECK (((dead_retention_days >= 1) AND (dead_retention_days <= 3650))),
  CONSTRAINT queue_key_ttl_seconds_check CHECK ((key_ttl_seconds > 0)),
  CONSTRAINT queue_max_attempts_check CHECK (((max_attempts >= 1) AND (max_attempts <= 1000))),
  CONSTRAINT queue_pkey PRIMARY KEY (id),
  CONSTRAINT queue_retention_days_check CHECK (((retention_days >= 1) AND (retention_days <= 3650))),
  CONSTRAINT queue_tenant_name_key UNIQUE (tenant, name),
  CONSTRAINT queue_timeline_retention_days_check CHECK (((timeline_retention_days >= 1) AND (timeline_retention_days <= 3650))),
  CONSTRAINT queue_warn_depth_check CHECK ((warn_depth >= 0))
);

CREATE TABLE millrace.queue_count (
  queue_id integer NOT NULL,
  process uuid NOT NULL,
  minute timestamp with time zone NOT NULL,
  enqueued bigint NOT NULL DEFAULT 0,
  completed bigint NOT NULL DEFAULT 0,
  dead bigint NOT NULL DEFAULT 0,
  removed bigint NOT NULL DEFAULT 0,
  retried bigint NOT NULL DEFAULT 0,
  CONSTRAINT queue_count_pkey PRIMARY KEY (queue_id, process, minute)
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=1000, fillfactor=50);

CREATE TABLE millrace.scheduled_job (
  id uuid NOT NULL,
  due_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  queue_id integer NOT NULL,
  tenant_slot integer NOT NULL DEFAULT 0,
  lane integer NOT NULL DEFAULT 0,
  claim_no integer NOT NULL DEFAULT 0,
  max_runtime_ms integer,
  weight smallint NOT NULL,
  attempt smallint NOT NULL DEFAULT 0,
  max_attempts smallint NOT NULL,
  crash_count smallint NOT NULL DEFAULT 0,
  type text NOT NULL,
  tenant text NOT NULL,
  payload json STORAGE EXTERNAL NOT NULL,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  CONSTRAINT scheduled_job_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=5000, vacuum_truncate=false);
CREATE INDEX scheduled_job_correlation ON millrace.scheduled_job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX scheduled_job_due ON millrace.scheduled_job USING btree (due_at);
CREATE INDEX scheduled_job_expiry ON millrace.scheduled_job USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX scheduled_job_reference ON millrace.scheduled_job USING btree (reference) WHERE (reference IS NOT NULL);
CREATE INDEX scheduled_job_tenant ON millrace.scheduled_job USING btree (tenant, id) WHERE (tenant <> 'default'::text);

CREATE TABLE millrace.trigger (
  id uuid NOT NULL,
  tenant text NOT NULL,
  name text NOT NULL,
  type text NOT NULL,
  enabled boolean NOT NULL DEFAULT true,
  cron text,
  time_zone text,
  missed_slots text NOT NULL DEFAULT 'skip'::text,
  max_catch_up integer NOT NULL DEFAULT 100,
  queue_id integer,
  batch_size integer NOT NULL DEFAULT 1,
  polling_interval_ms integer NOT NULL DEFAULT 30000,
  on_arrival boolean NOT NULL DEFAULT false,
  job_type text NOT NULL,
  job_queue_id integer NOT NULL,
  job_priority text,
  job_weight smallint NOT NULL,
  job_max_attempts smallint,
  job_max_runtime_ms integer,
  job_category text,
  payload json NOT NULL,
  handled_until timestamp with time zone,
  last_fired_at timestamp with time zone,
  last_job_id uuid,
  last_processed_item_id uuid,
  next_fire_at timestamp with time zone,
  failures integer NOT NULL DEFAULT 0,
  last_error json,
  retry_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  job_payload_version text,
  job_expires_in_ms bigint,
  CONSTRAINT trigger_batch_size_check CHECK (((batch_size >= 1) AND (batch_size <= 1000))),
  CONSTRAINT trigger_check CHECK (
CASE type
    WHEN 'TIME'::text THEN ((cron IS NOT NULL) AND (time_zone IS NOT NULL))
    ELSE (queue_id IS NOT NULL)
END),
  CONSTRAINT trigger_max_catch_up_check CHECK (((max_catch_up >= 1) AND (max_catch_up <= 1000))),
  CONSTRAINT trigger_missed_slots_check CHECK ((missed_slots = ANY (ARRAY['skip'::text, 'last'::text, 'all'::text]))),
  CONSTRAINT trigger_pkey PRIMARY KEY (id),
  CONSTRAINT trigger_polling_interval_ms_check CHECK ((polling_interval_ms >= 1000)),
  CONSTRAINT trigger_tenant_name_key UNIQUE (tenant, name),
  CONSTRAINT trigger_type_check CHECK ((type = ANY (ARRAY['TIME'::text, 'QUEUE'::text])))
);
CREATE INDEX trigger_arrival ON millrace.trigger USING btree (queue_id) WHERE (enabled AND on_arrival);
CREATE INDEX trigger_due ON millrace.trigger USING btree (next_fire_at) WHERE enabled;

CREATE TABLE millrace.trigger_batch (
  job_id uuid NOT NULL,
  trigger_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT trigger_batch_pkey PRIMARY KEY (job_id)
);

CREATE TABLE millrace.trigger_slot (
  trigger_id uuid NOT NULL,
  slot_at timestamp with time zone NOT NULL,
  job_id uuid NOT NULL,
  CONSTRAINT trigger_slot_pkey PRIMARY KEY (trigger_id, slot_at)
);

CREATE TABLE millrace.unique_name (
  scope text NOT NULL,
  key text NOT NULL,
  job_id uuid NOT NULL,
  request_hash bytea,
  expires_at timestamp with time zone,
  CONSTRAINT unique_name_pkey PRIMARY KEY (scope, key)
);
CREATE INDEX unique_name_expiry ON millrace.unique_name USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX unique_name_job ON millrace.unique_name USING btree (job_id);

CREATE TABLE millrace.webhook (
  id uuid NOT NULL,
  tenant text,
  name text NOT NULL,
  url text NOT NULL,
  kinds text[] NOT NULL,
  queues text[],
  is_active boolean NOT NULL DEFAULT true,
  signing_key bytea NOT NULL,
  old_signing_key bytea,
  old_signing_key_until timestamp with time zone,
  failures integer NOT NULL DEFAULT 0,
  failing_since timestamp with time zone,
  last_error text,
  last_failed_at timestamp with time zone,
  last_delivered_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  retry_at timestamp with time zone,
  CONSTRAINT webhook_old_signing_key_check CHECK ((length(old_signing_key) = 32)),
  CONSTRAINT webhook_pkey PRIMARY KEY (id),
  CONSTRAINT webhook_signing_key_check CHECK ((length(signing_key) = 32))
) WITH (fillfactor=70);

CREATE OR REPLACE FUNCTION millrace.attach_history(retention smallint, first_day date, days integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  class_table text := format('history_%s', retention);
  day_table text;
  day date;
  attached int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('millrace.attach_history', 0));
  if to_regclass(format('millrace.%I', class_table)) is null then
    execute format(
      'create table millrace.%I (like millrace.history including defaults including storage including constraints) partition by range (finished_at)',
      class_table);
    execute format('alter table millrace.history attach partition millrace.%I for values in (%s)', class_table, retention);
  end if;
  for day in select first_day + n from generate_series(0, days - 1) n loop
    day_table := format('%s_%s', class_table, to_char(day, 'YYYYMMDD'));
    if to_regclass(format('millrace.%I', day_table)) is null then
      execute format(
        'create table millrace.%I (like millrace.%I including defaults including storage including constraints) with (toast_tuple_target = 600, autovacuum_vacuum_insert_scale_factor = 1)',
        day_table, class_table);
      execute format('alter table millrace.%I alter column payload set storage external', day_table);
      execute format(
        'alter table millrace.%I attach partition millrace.%I for values from (%L) to (%L)',
        class_table, day_table, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
      attached := attached + 1;
    end if;
  end loop;
  return attached;
end $function$;

CREATE OR REPLACE FUNCTION millrace.audit_text(fields text[])
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select string_agg(coalesce(octet_length(convert_to(field, 'UTF8')) || ':' || field, '-'), ',' order by place)
  from unnest(fields) with ordinality f (field, place)
$function$;

CREATE OR REPLACE FUNCTION millrace.canonical_json(value jsonb)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.chain_audit()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update millrace.audit_head h set no = h.no + 1, hash = sha256(h.hash || convert_to(millrace.audit_text(array[
      (h.no + 1)::text, to_char(new.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), new.tenant,
      new.actor, new.action, new.target, new.reason, new.details::text]), 'UTF8'))
  returning h.no, h.hash into new.no, new.hash;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION millrace.check_enqueue(names text[], payload jsonb, delay interval, priority integer, max_attempts integer, expires_in interval)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.enqueue(type text, payload jsonb, queue text DEFAULT 'default'::text, tenant text DEFAULT 'default'::text, key text DEFAULT NULL::text, delay interval DEFAULT NULL::interval, priority integer DEFAULT 5, reference text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, max_attempts integer DEFAULT NULL::integer, expires_in interval DEFAULT NULL::interval)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.ensure_queue(name text)
 RETURNS millrace.queue
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.is_business(exception_type text, result json, error_message text)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case when exception_type is not null then exception_type = 'business'
    else concat_ws(' ', case when json_typeof(result) = 'object' then
      concat_ws(' ', result->>'failure_reason', result->>'reason', result->>'type', result->>'error_message') end,
      error_message) ilike '%business%' end
$function$;

CREATE OR REPLACE FUNCTION millrace.new_job_id()
 RETURNS uuid
 LANGUAGE sql
AS $function$
  -- UUIDv7: milliseconds first, then what is random in a UUIDv4.
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$function$;

CREATE OR REPLACE FUNCTION millrace.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'the audit trail is append-only' using errcode = 'MR403';
end $function$;

CREATE OR REPLACE FUNCTION millrace.tally_dead()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op <> 'INSERT' then
    insert into millrace.item_tally as t (queue_id, bucket, failed, business)
    select queue_id, pg_backend_pid() % 16, -count(*),
      -count(*) filter (where millrace.is_business(exception_type, result, error_message))
    from before where state = 'dead' group by queue_id order by queue_id
    on conflict (queue_id, bucket) do update
      set failed = t.failed + excluded.failed, business = t.business + excluded.business;
  end if;
  if tg_op <> 'DELETE' then
    insert into millrace.item_tally as t (queue_id, bucket, failed, business)
    select queue_id, pg_backend_pid() % 16, count(*),
      count(*) filter (where millrace.is_business(exception_type, result, error_message))
    from after where state = 'dead' group by queue_id order by queue_id
    on conflict (queue_id, bucket) do update
      set failed = t.failed + excluded.failed, business = t.business + excluded.business;
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tally_history()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into millrace.item_tally as t (queue_id, bucket, done_deleted)
  select b.queue_id, pg_backend_pid() % 16, count(*)
  from before b join after a on a.id = b.id
  where b.state = 'completed' and a.state <> 'completed' group by b.queue_id order by b.queue_id
  on conflict (queue_id, bucket) do update set done_deleted = t.done_deleted + excluded.done_deleted;
  return null;
end $function$;
