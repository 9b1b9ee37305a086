-- What the migrations make, for review. Written by `npm run schema`, checked by `npm run check`.
-- Not a migration: nothing runs this file. History's daily partitions are left out.

CREATE SEQUENCE millrace.audit_id_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807 OWNED BY millrace.audit.id;

CREATE SEQUENCE millrace.flush_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807;

CREATE SEQUENCE millrace.queue_id_seq AS integer
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 2147483647 OWNED BY millrace.queue.id;

CREATE TABLE millrace.audit (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamp with time zone NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  reason text,
  details json,
  CONSTRAINT audit_pkey PRIMARY KEY (id)
);

CREATE TABLE millrace.claim (
  id uuid NOT NULL,
  lease_id uuid,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  deadline timestamp with time zone,
  expires_at timestamp with time zone,
  job_ids uuid[] NOT NULL,
  cancels uuid[],
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
  CONSTRAINT dead_job_pkey PRIMARY KEY (id),
  CONSTRAINT dead_job_state_check CHECK ((state = ANY (ARRAY['dead'::text, 'discarded'::text])))
);
CREATE INDEX dead_job_correlation ON millrace.dead_job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX dead_job_fingerprint ON millrace.dead_job USING btree (error_fingerprint, finished_at);
CREATE INDEX dead_job_queue ON millrace.dead_job USING btree (queue_id, state, finished_at);
CREATE INDEX dead_job_tenant ON millrace.dead_job USING btree (tenant, finished_at);

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
CREATE INDEX history_tenant ON ONLY millrace.history USING btree (tenant, finished_at);

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
) WITH (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=5000, fillfactor=50, toast_tuple_target=256, vacuum_truncate=false);
CREATE INDEX job_claim ON millrace.job USING btree (queue_id, weight, tenant_slot, lane, seq);
CREATE INDEX job_expiry ON millrace.job USING btree (expires_at) WHERE (expires_at IS NOT NULL);

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
  CONSTRAINT queue_capacity_check CHECK ((capacity >= 0)),
  CONSTRAINT queue_key_ttl_seconds_check CHECK ((key_ttl_seconds > 0)),
  CONSTRAINT queue_max_attempts_check CHECK (((max_attempts >= 1) AND (max_attempts <= 1000))),
  CONSTRAINT queue_pkey PRIMARY KEY (id),
  CONSTRAINT queue_retention_days_check CHECK (((retention_days >= 1) AND (retention_days <= 3650))),
  CONSTRAINT queue_tenant_name_key UNIQUE (tenant, name),
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
CREATE INDEX scheduled_job_due ON millrace.scheduled_job USING btree (due_at);
CREATE INDEX scheduled_job_expiry ON millrace.scheduled_job USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE TABLE millrace.unique_name (
  scope text NOT NULL,
  key text NOT NULL,
  job_id uuid NOT NULL,
  request_hash bytea,
  expires_at timestamp with time zone,
  CONSTRAINT unique_name_pkey PRIMARY KEY (scope, key)
);
CREATE INDEX unique_name_job ON millrace.unique_name USING btree (job_id);

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
        'create table millrace.%I (like millrace.%I including defaults including storage including constraints) with (toast_tuple_target = 256, autovacuum_vacuum_insert_scale_factor = 1)',
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
