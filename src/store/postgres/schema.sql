-- What the migrations make, for review. Written by `npm run schema`, checked by `npm run check`.
-- Not a migration: nothing runs this file. History's daily partitions are left out.

CREATE SEQUENCE millrace.audit_id_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807 OWNED BY millrace.audit.id;

CREATE SEQUENCE millrace.breaker_id_seq AS integer
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 2147483647 OWNED BY millrace.breaker.id;

CREATE SEQUENCE millrace.event_id_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807 OWNED BY millrace.event.id;

CREATE SEQUENCE millrace.event_no AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807;

CREATE SEQUENCE millrace.flush_seq AS bigint
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 9223372036854775807;

CREATE SEQUENCE millrace.queue_id_seq AS integer
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 2147483647 OWNED BY millrace.queue.id;

CREATE SEQUENCE millrace.tenant_slot_seq AS integer
  START 1 INCREMENT 1 CACHE 1 MINVALUE 1 MAXVALUE 2147483647;

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
ALTER TABLE millrace.api_key ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.api_key FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.api_key AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

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
CREATE INDEX audit_pruned ON millrace.audit USING btree (no) WHERE (action = 'audit_pruned'::text);
CREATE INDEX audit_tenant ON millrace.audit USING btree (tenant, no) WHERE (tenant IS NOT NULL);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON millrace.audit FOR EACH ROW EXECUTE FUNCTION millrace.refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON millrace.audit FOR EACH STATEMENT EXECUTE FUNCTION millrace.refuse_change();
CREATE TRIGGER chain BEFORE INSERT ON millrace.audit FOR EACH ROW EXECUTE FUNCTION millrace.chain_audit();
CREATE TRIGGER tell_insert AFTER INSERT ON millrace.audit FOR EACH ROW EXECUTE FUNCTION millrace.tell_audit();
ALTER TABLE millrace.audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.audit FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.audit AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

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
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.breaker FOR EACH ROW WHEN ((new.state <> old.state)) EXECUTE FUNCTION millrace.tell_breaker();

CREATE TABLE millrace.claim (
  id uuid NOT NULL,
  lease_id uuid,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  deadline timestamp with time zone,
  expires_at timestamp with time zone,
  job_ids uuid[] STORAGE EXTERNAL NOT NULL,
  cancels uuid[],
  queue_id integer,
  lanes integer[],
  robot text,
  holder uuid,
  CONSTRAINT claim_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=1000, fillfactor=70);
CREATE INDEX claim_lease ON millrace.claim USING btree (lease_id);
CREATE INDEX claim_queue ON millrace.claim USING btree (queue_id) WHERE (queue_id IS NOT NULL);
ALTER TABLE millrace.claim ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.claim FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.claim AS RESTRICTIVE FOR ALL TO millrace_tenant USING ((EXISTS ( SELECT
   FROM millrace.job j
  WHERE ((j.id = ANY (claim.job_ids)) AND (j.claim_id = claim.id)))));

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
  payload json,
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
  lane integer NOT NULL DEFAULT 0,
  seq bigint,
  exception_type text,
  result json,
  CONSTRAINT dead_job_exception_type_check CHECK ((exception_type = ANY (ARRAY['application'::text, 'business'::text]))),
  CONSTRAINT dead_job_pkey PRIMARY KEY (id),
  CONSTRAINT dead_job_state_check CHECK ((state = ANY (ARRAY['dead'::text, 'discarded'::text])))
);
CREATE INDEX dead_job_correlation ON millrace.dead_job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX dead_job_fingerprint ON millrace.dead_job USING btree (error_fingerprint, finished_at);
CREATE INDEX dead_job_finished ON millrace.dead_job USING btree (finished_at, id);
CREATE INDEX dead_job_lane ON millrace.dead_job USING btree (queue_id, lane) WHERE ((lane > 1) AND (state = 'dead'::text) AND (reprocessed_as IS NULL));
CREATE INDEX dead_job_queue ON millrace.dead_job USING btree (queue_id, state, finished_at);
CREATE INDEX dead_job_reference ON millrace.dead_job USING btree (reference) WHERE (reference IS NOT NULL);
CREATE INDEX dead_job_tenant ON millrace.dead_job USING btree (tenant, finished_at);
CREATE INDEX dead_job_tenant_id ON millrace.dead_job USING btree (tenant, id) WHERE (tenant <> 'default'::text);
CREATE TRIGGER tally_delete AFTER DELETE ON millrace.dead_job REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead();
CREATE TRIGGER tally_insert AFTER INSERT ON millrace.dead_job REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead();
CREATE TRIGGER tally_letters_delete AFTER DELETE ON millrace.dead_job REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead_letters();
CREATE TRIGGER tally_letters_insert AFTER INSERT ON millrace.dead_job REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead_letters();
CREATE TRIGGER tally_letters_update AFTER UPDATE ON millrace.dead_job REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead_letters();
CREATE TRIGGER tally_update AFTER UPDATE ON millrace.dead_job REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tally_dead();
CREATE TRIGGER tell_insert AFTER INSERT ON millrace.dead_job REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tell_dead();
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.dead_job REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tell_repaired();
ALTER TABLE millrace.dead_job ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.dead_job FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.dead_job AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

CREATE TABLE millrace.dead_letter_tally (
  tenant text NOT NULL,
  queue_id integer NOT NULL,
  status text NOT NULL,
  error_class text NOT NULL,
  category text NOT NULL,
  fingerprint text NOT NULL,
  bucket integer NOT NULL,
  letters bigint NOT NULL,
  CONSTRAINT dead_letter_tally_pkey PRIMARY KEY (tenant, queue_id, status, error_class, category, fingerprint, bucket)
) WITH (fillfactor=50);
ALTER TABLE millrace.dead_letter_tally ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.dead_letter_tally FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.dead_letter_tally AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

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

CREATE TABLE millrace.deep_tenant (
  tenant text NOT NULL,
  since timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT deep_tenant_pkey PRIMARY KEY (tenant)
);

CREATE TABLE millrace.event (
  id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  no bigint,
  at timestamp with time zone NOT NULL DEFAULT now(),
  kind text NOT NULL,
  tenant text,
  data json NOT NULL,
  CONSTRAINT event_no_key UNIQUE (no),
  CONSTRAINT event_pkey PRIMARY KEY (id)
) WITH (fillfactor=80);
CREATE INDEX event_age ON millrace.event USING btree (at);
CREATE INDEX event_without_place ON millrace.event USING btree (id) WHERE (no IS NULL);

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
  payload json,
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
ALTER TABLE millrace.history ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.history FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.history AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

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
  payload json STORAGE EXTERNAL,
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
ALTER TABLE millrace.job ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.job FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.job AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

CREATE TABLE millrace.job_label (
  tenant text NOT NULL,
  name text NOT NULL,
  value text NOT NULL,
  job_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT job_label_pkey PRIMARY KEY (tenant, name, value, job_id)
);
CREATE INDEX job_label_job ON millrace.job_label USING btree (job_id);
ALTER TABLE millrace.job_label ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.job_label FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.job_label AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

CREATE TABLE millrace.lane_cursor (
  queue_id integer NOT NULL,
  weight smallint NOT NULL,
  slot integer NOT NULL,
  lane integer NOT NULL,
  CONSTRAINT lane_cursor_pkey PRIMARY KEY (queue_id, weight, slot)
) WITH (fillfactor=50);

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
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.leader FOR EACH ROW WHEN (((new.term <> old.term) OR (new.holder IS DISTINCT FROM old.holder))) EXECUTE FUNCTION millrace.tell_leader();

CREATE TABLE millrace.lease (
  id uuid NOT NULL,
  worker text NOT NULL,
  started_at timestamp with time zone NOT NULL DEFAULT now(),
  renewed_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL,
  info json,
  offer_id uuid,
  offer json,
  shared_claim uuid,
  spared boolean,
  alone_claim uuid,
  CONSTRAINT lease_pkey PRIMARY KEY (id)
) WITH (fillfactor=50);
ALTER TABLE millrace.lease ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.lease FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.lease AS RESTRICTIVE FOR ALL TO millrace_tenant USING ((EXISTS ( SELECT
   FROM millrace.claim c
  WHERE (c.lease_id = lease.id))));

CREATE TABLE millrace.long_payload (
  job_id uuid NOT NULL,
  tenant text NOT NULL,
  payload text STORAGE EXTERNAL NOT NULL,
  CONSTRAINT long_payload_pkey PRIMARY KEY (job_id)
) WITH (toast_tuple_target=8160);
ALTER TABLE millrace.long_payload ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.long_payload FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.long_payload AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

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
  tally_queue_id integer,
  tally_minute timestamp with time zone,
  tally_jobs bigint NOT NULL DEFAULT 0,
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
  first_tenant text,
  fairness boolean NOT NULL DEFAULT true,
  laned boolean NOT NULL DEFAULT false,
  dead_blocks_key boolean NOT NULL DEFAULT false,
  ageing_step_ms integer,
  concurrency integer,
  key_concurrency integer,
  throttle_starts integer,
  throttle_ms integer,
  key_throttle_starts integer,
  key_throttle_ms integer,
  rate_limit integer,
  rate_ms integer,
  tenant_rate_limit integer,
  tenant_rate_ms integer,
  deleted_at timestamp with time zone,
  tenant_capacity integer,
  CONSTRAINT queue_ageing_step_ms_check CHECK ((ageing_step_ms > 0)),
  CONSTRAINT queue_capacity_check CHECK ((capacity >= 0)),
  CONSTRAINT queue_concurrency_check CHECK ((concurrency > 0)),
  CONSTRAINT queue_dead_retention_days_check CHECK (((dead_retention_days >= 1) AND (dead_retention_days <= 3650))),
  CONSTRAINT queue_key_concurrency_check CHECK ((key_concurrency > 0)),
  CONSTRAINT queue_key_throttle_ms_check CHECK ((key_throttle_ms >= 10)),
  CONSTRAINT queue_key_throttle_starts_check CHECK ((key_throttle_starts > 0)),
  CONSTRAINT queue_key_ttl_seconds_check CHECK ((key_ttl_seconds > 0)),
  CONSTRAINT queue_max_attempts_check CHECK (((max_attempts >= 1) AND (max_attempts <= 1000))),
  CONSTRAINT queue_pkey PRIMARY KEY (id),
  CONSTRAINT queue_rate_limit_check CHECK ((rate_limit > 0)),
  CONSTRAINT queue_rate_ms_check CHECK ((rate_ms >= 10)),
  CONSTRAINT queue_retention_days_check CHECK (((retention_days >= 1) AND (retention_days <= 3650))),
  CONSTRAINT queue_tenant_capacity_check CHECK ((tenant_capacity >= 0)),
  CONSTRAINT queue_tenant_name_key UNIQUE (tenant, name),
  CONSTRAINT queue_tenant_rate_limit_check CHECK ((tenant_rate_limit > 0)),
  CONSTRAINT queue_tenant_rate_ms_check CHECK ((tenant_rate_ms >= 10)),
  CONSTRAINT queue_throttle_ms_check CHECK ((throttle_ms >= 10)),
  CONSTRAINT queue_throttle_starts_check CHECK ((throttle_starts > 0)),
  CONSTRAINT queue_timeline_retention_days_check CHECK (((timeline_retention_days >= 1) AND (timeline_retention_days <= 3650))),
  CONSTRAINT queue_warn_depth_check CHECK ((warn_depth >= 0))
);
CREATE INDEX queue_tenant_name ON millrace.queue USING btree (name) WHERE (tenant <> ''::text);
CREATE TRIGGER tell_insert AFTER INSERT ON millrace.queue FOR EACH ROW EXECUTE FUNCTION millrace.tell_queue();
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.queue FOR EACH ROW WHEN ((new.updated_at IS DISTINCT FROM old.updated_at)) EXECUTE FUNCTION millrace.tell_queue();
ALTER TABLE millrace.queue ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.queue FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.queue AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text) IS NOT NULL) AND (tenant = ANY (ARRAY[''::text, NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)]))));

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

CREATE TABLE millrace.queue_turn (
  queue_id integer NOT NULL,
  CONSTRAINT queue_turn_pkey PRIMARY KEY (queue_id)
) WITH (fillfactor=50);

CREATE TABLE millrace.rate_bucket (
  key text NOT NULL,
  most integer NOT NULL,
  window_ms integer NOT NULL,
  tokens double precision NOT NULL,
  at timestamp with time zone NOT NULL,
  wanted integer NOT NULL,
  owed integer NOT NULL,
  granted integer NOT NULL,
  CONSTRAINT rate_bucket_pkey PRIMARY KEY (key)
) WITH (fillfactor=50);

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
  payload json STORAGE EXTERNAL,
  correlation_id text,
  idempotency_key text,
  reference text,
  meta json,
  timeline json,
  seq bigint,
  CONSTRAINT scheduled_job_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_threshold=5000, vacuum_truncate=false);
CREATE INDEX scheduled_job_correlation ON millrace.scheduled_job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX scheduled_job_due ON millrace.scheduled_job USING btree (due_at);
CREATE INDEX scheduled_job_expiry ON millrace.scheduled_job USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX scheduled_job_lane ON millrace.scheduled_job USING btree (queue_id, lane, due_at) WHERE ((lane > 1) AND (claim_no > 0));
CREATE INDEX scheduled_job_reference ON millrace.scheduled_job USING btree (reference) WHERE (reference IS NOT NULL);
CREATE INDEX scheduled_job_tenant ON millrace.scheduled_job USING btree (tenant, id) WHERE (tenant <> 'default'::text);
ALTER TABLE millrace.scheduled_job ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.scheduled_job FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.scheduled_job AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

CREATE TABLE millrace.session (
  id_hash bytea NOT NULL,
  key_id uuid NOT NULL,
  proof bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  expires_at timestamp with time zone NOT NULL,
  idle_until timestamp with time zone NOT NULL,
  CONSTRAINT session_id_hash_check CHECK ((length(id_hash) = 32)),
  CONSTRAINT session_pkey PRIMARY KEY (id_hash),
  CONSTRAINT session_proof_check CHECK ((length(proof) = 32))
) WITH (fillfactor=70);
CREATE INDEX session_key ON millrace.session USING btree (key_id, created_at);

CREATE TABLE millrace.slot_cursor (
  queue_id integer NOT NULL,
  weight smallint NOT NULL,
  slot integer NOT NULL,
  credit integer NOT NULL,
  CONSTRAINT slot_cursor_pkey PRIMARY KEY (queue_id, weight)
) WITH (fillfactor=50);

CREATE TABLE millrace.start_count (
  queue_id integer NOT NULL,
  lane integer NOT NULL,
  slice bigint NOT NULL,
  starts integer NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT start_count_pkey PRIMARY KEY (queue_id, lane, slice)
) WITH (fillfactor=50);

CREATE TABLE millrace.tenant (
  name text NOT NULL,
  weight integer NOT NULL DEFAULT 1,
  paused_at timestamp with time zone,
  rate_limit integer,
  rate_ms integer,
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  capacity integer,
  warn_depth integer,
  CONSTRAINT tenant_capacity_check CHECK ((capacity >= 0)),
  CONSTRAINT tenant_pkey PRIMARY KEY (name),
  CONSTRAINT tenant_rate_limit_check CHECK ((rate_limit > 0)),
  CONSTRAINT tenant_rate_ms_check CHECK ((rate_ms >= 10)),
  CONSTRAINT tenant_warn_depth_check CHECK ((warn_depth >= 0)),
  CONSTRAINT tenant_weight_check CHECK (((weight >= 1) AND (weight <= 100)))
);
CREATE TRIGGER tell_insert AFTER INSERT ON millrace.tenant FOR EACH ROW WHEN ((new.paused_at IS NOT NULL)) EXECUTE FUNCTION millrace.tell_tenant();
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.tenant FOR EACH ROW WHEN (((new.paused_at IS NULL) <> (old.paused_at IS NULL))) EXECUTE FUNCTION millrace.tell_tenant();

CREATE TABLE millrace.tenant_count (
  tenant text NOT NULL,
  queue_id integer NOT NULL,
  process uuid NOT NULL,
  minute timestamp with time zone NOT NULL,
  jobs bigint NOT NULL,
  CONSTRAINT tenant_count_pkey PRIMARY KEY (tenant, queue_id, process, minute)
) WITH (fillfactor=50);

CREATE TABLE millrace.tenant_slot (
  queue_id integer NOT NULL,
  slot integer NOT NULL,
  tenant text NOT NULL,
  CONSTRAINT tenant_slot_pkey PRIMARY KEY (queue_id, slot),
  CONSTRAINT tenant_slot_queue_id_tenant_key UNIQUE (queue_id, tenant)
);
CREATE INDEX tenant_slot_tenant ON millrace.tenant_slot USING btree (tenant);

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
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.trigger REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION millrace.tell_trigger();
ALTER TABLE millrace.trigger ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.trigger FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.trigger AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

CREATE TABLE millrace.trigger_batch (
  job_id uuid NOT NULL,
  trigger_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT trigger_batch_pkey PRIMARY KEY (job_id)
);
ALTER TABLE millrace.trigger_batch ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.trigger_batch FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.trigger_batch AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((EXISTS ( SELECT
   FROM millrace.job j
  WHERE (j.id = trigger_batch.job_id))) OR (EXISTS ( SELECT
   FROM millrace.scheduled_job j
  WHERE (j.id = trigger_batch.job_id)))));

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
CREATE TRIGGER unique_name_reference AFTER INSERT ON millrace.unique_name FOR EACH ROW WHEN ((new.scope ~ '^ref:[0-9]+$'::text)) EXECUTE FUNCTION millrace.name_reference();
ALTER TABLE millrace.unique_name ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.unique_name FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.unique_name AS RESTRICTIVE FOR ALL TO millrace_tenant USING ((scope = ('key:'::text || NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text))));

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
CREATE TRIGGER tell_update AFTER UPDATE ON millrace.webhook FOR EACH ROW WHEN (((new.failing_since IS NULL) <> (old.failing_since IS NULL))) EXECUTE FUNCTION millrace.tell_webhook();
ALTER TABLE millrace.webhook ENABLE ROW LEVEL SECURITY;
CREATE POLICY all_rows ON millrace.webhook FOR ALL TO PUBLIC USING (true) WITH CHECK (true);
CREATE POLICY tenant_rows ON millrace.webhook AS RESTRICTIVE FOR ALL TO millrace_tenant USING (((tenant COLLATE "C") = NULLIF(current_setting(('millrace'::text || '.tenant'::text), true), ''::text)));

CREATE VIEW millrace.queue_tally (queue_id /* integer */, process /* uuid */, minute /* timestamp with time zone */, enqueued /* bigint */, completed /* bigint */, dead /* bigint */, removed /* bigint */, retried /* bigint */) AS …;

CREATE OR REPLACE FUNCTION millrace.add_event(kind text, tenant text, data json)
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into millrace.event (kind, tenant, data) values (kind, nullif(tenant, ''), data)
$function$;

CREATE OR REPLACE FUNCTION millrace.add_to_dead_letter_tally(changes millrace.dead_letter_change[])
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into millrace.dead_letter_tally as t (tenant, queue_id, status, error_class, category, fingerprint, bucket, letters)
  select tenant, queue_id, status, error_class, category, fingerprint, pg_backend_pid() % 16, sum(letters)
  from unnest(changes) group by 1, 2, 3, 4, 5, 6 having sum(letters) <> 0 order by 1, 2, 3, 4, 5, 6
  on conflict (tenant, queue_id, status, error_class, category, fingerprint, bucket) do update
    set letters = t.letters + excluded.letters
$function$;

CREATE OR REPLACE FUNCTION millrace.attach_history(retention smallint, first_day date, days integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
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
      elsif size >= 9007199254740992 and size < 1e40 then
        return repeat('-', (shortest like '-%')::int) || millrace.number_as_javascript(trim_scale(size));
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

CREATE OR REPLACE FUNCTION millrace.channel()
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select 'millrace_' || s.nspname from pg_class t join pg_namespace s on s.oid = t.relnamespace
  where t.oid = 'millrace.job'::regclass
$function$;

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

CREATE OR REPLACE FUNCTION millrace.claim_lanes(p_claim uuid, p_lease uuid, p_queue integer, p_most integer, p_types text[], p_suspect boolean, p_tenant text DEFAULT NULL::text)
 RETURNS TABLE(id uuid, claim_no integer, type text, queue_id integer, tenant text, attempt smallint, max_attempts smallint, crash_count smallint, payload json, created_at double precision, started_at double precision, weight smallint, seq double precision, rare json, tid tid)
 LANGUAGE plpgsql
AS $function$
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
        select t.*, v.i, turn + (row_number() over (partition by v.i order by t.seq) - 1
            + case when v.i = 1 and credit > 0 then greatest(0, v.share - credit) else 0 end)::int / v.share as turn
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.count_held(queue integer)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(jsonb_object_agg(h.lane, h.n), '{}')
  from (select x.lane, count(*) as n from millrace.held_lanes(queue) x group by x.lane) h
$function$;

CREATE OR REPLACE FUNCTION millrace.dead_letter_status(state text, reprocessed_as uuid)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case when state = 'discarded' then 'discarded' when reprocessed_as is not null then 'reprocessed'
    else 'pending_review' end
$function$;

CREATE OR REPLACE FUNCTION millrace.enqueue(type text, payload jsonb, queue text DEFAULT 'default'::text, tenant text DEFAULT 'default'::text, key text DEFAULT NULL::text, delay interval DEFAULT NULL::interval, priority integer DEFAULT 5, reference text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, max_attempts integer DEFAULT NULL::integer, expires_in interval DEFAULT NULL::interval, ordering_key text DEFAULT NULL::text, limit_key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  new_id uuid := millrace.new_job_id();
  body jsonb := coalesce(enqueue.payload, 'null');
  due timestamptz;
  expiry timestamptz;
  target millrace.queue;
  attempts smallint;
  request bytea;
  owner record;
  depth bigint;
  slot int := 0;
  lane int := coalesce(millrace.lane_of(enqueue.tenant, enqueue.ordering_key, true),
    millrace.lane_of(enqueue.tenant, enqueue.limit_key, false), 0);
  notes jsonb := jsonb_strip_nulls(jsonb_build_object(
    'source', 'sql', 'orderingKey', enqueue.ordering_key, 'limitKey', enqueue.limit_key));
  own millrace.tenant;
begin
  if enqueue.ordering_key is not null and enqueue.limit_key is not null then
    raise exception using errcode = 'MR400',
      message = 'OPTION_INVALID: a job has an ordering_key or a limit_key, not both';
  end if;
  perform millrace.check_enqueue(
    array[enqueue.type, enqueue.queue, enqueue.tenant, enqueue.key, enqueue.reference, enqueue.correlation_id,
      enqueue.ordering_key, enqueue.limit_key],
    body, enqueue.delay, enqueue.priority, enqueue.max_attempts, enqueue.expires_in);
  due := case when enqueue.delay > interval '0' then now() + enqueue.delay end;
  expiry := now() + enqueue.expires_in;
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
    insert into millrace.unique_name (scope, key, job_id) values ('ref:' || target.id || ':' || enqueue.tenant, enqueue.reference, new_id)
    on conflict (scope, key) do nothing;
    if not found then
      raise exception using errcode = 'MR409', message = 'REFERENCE_TAKEN: the reference is already used in this queue';
    end if;
  end if;

  if target.capacity is not null then
    select coalesce(sum(c.enqueued - c.completed - c.dead - c.removed), 0) into depth
    from millrace.queue_tally c where c.queue_id = target.id;
    if depth >= target.capacity then
      raise exception using errcode = 'MR429',
        message = format('QUEUE_FULL: queue "%s" holds %s of %s jobs; 1 more does not fit', enqueue.queue, depth, target.capacity);
    end if;
  end if;

  select * into own from millrace.tenant t where t.name = enqueue.tenant;
  if num_nonnulls(target.tenant_capacity, own.capacity, own.warn_depth) > 0 then
    if exists (
      select from (select coalesce(sum(c.jobs) filter (where c.queue_id = target.id), 0) as here,
        coalesce(sum(c.jobs), 0) as everywhere from millrace.tenant_count c where c.tenant = enqueue.tenant) c
      where c.here >= target.tenant_capacity or c.everywhere >= own.capacity
    ) then
      raise exception using errcode = 'MR429',
        message = format('TENANT_FULL: tenant "%s" holds as many jobs as it may; 1 more does not fit', enqueue.tenant);
    end if;
    notes := notes || '{"counted": true}';
    insert into millrace.tenant_count (tenant, queue_id, process, minute, jobs)
    values (enqueue.tenant, target.id, gen_random_uuid(), date_trunc('minute', now()), 1);
  end if;

  if target.fairness and target.first_tenant is distinct from enqueue.tenant then
    slot := millrace.slot_of(target.id, enqueue.tenant);
  end if;
  if lane > 0 and not target.laned then
    perform millrace.use_lanes(target.id);
  end if;
  if due is null then
    insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload,
      expires_at, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    values (new_id, nextval('millrace.flush_seq') * 1024, now(), now(), target.id, enqueue.priority, attempts,
      enqueue.type, enqueue.tenant, body::json, expiry, enqueue.correlation_id, enqueue.key, enqueue.reference,
      notes::json, slot, lane);
  else
    insert into millrace.scheduled_job (id, due_at, created_at, queue_id, weight, max_attempts, type, tenant, payload,
      expires_at, correlation_id, idempotency_key, reference, meta, tenant_slot, lane)
    values (new_id, due, now(), target.id, enqueue.priority, attempts,
      enqueue.type, enqueue.tenant, body::json, expiry, enqueue.correlation_id, enqueue.key, enqueue.reference,
      notes::json, slot, lane);
  end if;
  insert into millrace.queue_count (queue_id, process, minute, enqueued)
  values (target.id, gen_random_uuid(), date_trunc('minute', now()), 1);

  perform pg_notify(millrace.channel(), case when due is null then 'late ' || target.id
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

CREATE OR REPLACE FUNCTION millrace.held_lanes(queue integer)
 RETURNS TABLE(lane integer, job_id uuid, claim_id uuid)
 LANGUAGE sql
 STABLE ROWS 100
AS $function$
  select x.lane, x.id, c.id from millrace.claim c
  cross join lateral unnest(c.job_ids, c.lanes) x (id, lane)
  cross join lateral (select from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1) held
  where c.queue_id = queue
$function$;

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

CREATE OR REPLACE FUNCTION millrace.is_controlled(q millrace.queue)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  select q.fair or q.laned or q.ageing_step_ms is not null or q.concurrency is not null
    or q.throttle_starts is not null or exists (
      select from millrace.tenant t where t.paused_at is not null and (not q.fairness
        or exists (select from millrace.tenant_slot s where s.queue_id = q.id and s.tenant = t.name)
        or exists (select from millrace.trigger r where r.job_queue_id = q.id and r.tenant = t.name)))
$function$;

CREATE OR REPLACE FUNCTION millrace.lane_gate(q millrace.queue, lane integer, held integer, at timestamp with time zone, p_retries boolean DEFAULT true, p_dead boolean DEFAULT true)
 RETURNS TABLE(reason text, room integer, free_at timestamp with time zone)
 LANGUAGE sql
 STABLE ROWS 1
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION millrace.lane_of(tenant text, key text, ordered boolean)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select (('x' || substr(encode(sha256(convert_to(tenant || E'\n' || key, 'UTF8')), 'hex'), 1, 8))::bit(32)::bigint
    % 1073741823 + 1)::int * 2 + case when ordered then 1 else 0 end
$function$;

CREATE OR REPLACE FUNCTION millrace.name_reference()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  owner text := millrace.tenant_of(new.job_id);
begin
  if owner is null then
    return null;
  end if;
  insert into millrace.unique_name (scope, key, job_id) values (new.scope || ':' || owner, new.key, new.job_id)
  on conflict (scope, key) do nothing;
  if not found then
    raise exception using errcode = 'lock_not_available', message = 'the reference is already used in this queue';
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.new_job_id()
 RETURNS uuid
 LANGUAGE sql
AS $function$
  -- UUIDv7: milliseconds first, then what is random in a UUIDv4.
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$function$;

CREATE OR REPLACE FUNCTION millrace.note_starts(q millrace.queue, started integer[], held jsonb, at timestamp with time zone)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.number_as_javascript(size numeric)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.oldest_ready(q millrace.queue, p_weight smallint, p_types text[], p_paused text[], at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
  select min(h.ready_at) from millrace.slots_in_turn(q, p_weight, 0, 1000) s cross join lateral (
    select j.ready_at from millrace.job j
    where j.queue_id = q.id and j.weight = p_weight and j.tenant_slot = s.slot and j.lane >= 0 and j.claim_id is null
      and (j.expires_at is null or j.expires_at > at) and (p_types is null or j.type = any (p_types))
      and (p_paused is null or j.tenant <> all (p_paused))
    order by j.lane, j.seq limit 1) h
$function$;

CREATE OR REPLACE FUNCTION millrace.pick_lanes(q millrace.queue, p_weight smallint, p_slot integer, p_room integer, p_before timestamp with time zone, p_types text[], p_suspect boolean, p_paused text[], weights smallint[], held jsonb, at timestamp with time zone, p_tenant text)
 RETURNS TABLE(tid tid, suspect boolean)
 LANGUAGE plpgsql
 ROWS 100
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.queue_gate(q millrace.queue, held integer, at timestamp with time zone, OUT reason text, OUT room integer, OUT free_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  throttle record;
begin
  room := 2147483647;
  reason := case when not q.is_active then 'queue_inactive' when q.paused_at is not null then 'queue_paused'
    when held >= q.concurrency then 'concurrency' end;
  if reason is not null then
    room := 0;
    return;
  end if;
  room := least(room, q.concurrency - held);
  if q.throttle_starts is not null then
    throttle := millrace.throttle_gate(q.id, 0, q.throttle_starts, q.throttle_ms, at);
    if throttle.room < 1 then
      reason := 'throttle';
      free_at := throttle.free_at;
    end if;
    room := least(room, greatest(0, throttle.room));
  end if;
end $function$;

CREATE OR REPLACE FUNCTION millrace.queue_weights(queue integer)
 RETURNS SETOF smallint
 LANGUAGE sql
 STABLE ROWS 3
AS $function$
  with recursive head (weight) as (
    select (select j.weight from millrace.job j where j.queue_id = queue order by j.weight limit 1)
    union all
    select (select j.weight from millrace.job j where j.queue_id = queue and j.weight > h.weight order by j.weight limit 1)
    from head h where h.weight is not null
  )
  select weight from head where weight is not null
$function$;

CREATE OR REPLACE FUNCTION millrace.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'DELETE' and old.no <= (
    select (p.details->>'through')::bigint from millrace.audit p where p.action = 'audit_pruned'
    order by p.no desc limit 1
  ) then
    return old;
  end if;
  raise exception 'the audit trail is append-only' using errcode = 'MR403';
end $function$;

CREATE OR REPLACE FUNCTION millrace.secure_rows()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  mine text := $own$nullif(current_setting('millrace' || '.tenant', true), '')$own$;
  -- Not in the collation of the indexes: the policy is a filter, and which index is taken is decided by the
  -- statement's own conditions, as it is for everybody else.
  own text := 'tenant collate "C" = ' || mine;
  home text := (select quote_ident(n.nspname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'millrace.job'::regclass);
  secured record;
begin
  if not exists (select from pg_roles where rolname = 'millrace_tenant') then
    begin
      create role millrace_tenant nologin;
    exception when duplicate_object or unique_violation then null; -- somebody was faster
    end;
  end if;
  if not pg_has_role(current_user, 'millrace_tenant', 'member') then
    execute format('grant millrace_tenant to %I', current_user);
  end if;
  execute format('grant usage on schema %s to millrace_tenant', home);
  for secured in
    select * from (values
      ('job', '', own),
      ('scheduled_job', '', own),
      ('dead_job', '', own),
      ('dead_letter_tally', '', own),
      ('history', '', own),
      ('job_label', '', own),
      ('long_payload', '', own),
      ('audit', '', own),
      ('queue', '', format('%s is not null and tenant in ('''', %1$s)', mine)),
      ('unique_name', '(scope, key, job_id)', format('scope = ''key:'' || %s', mine)),
      ('claim', '(id, lease_id, robot, expires_at, job_ids)', format(
        'exists (select from %s.job j where j.id = any (job_ids) and j.claim_id = claim.id)', home)),
      ('lease', '(id, worker, expires_at)', format(
        'exists (select from %s.claim c where c.lease_id = lease.id)', home)),
      ('trigger_batch', '(job_id)', format(
        'exists (select from %s.job j where j.id = trigger_batch.job_id)
          or exists (select from %1$s.scheduled_job j where j.id = trigger_batch.job_id)', home)),
      ('trigger', '', own),
      ('webhook', '(id, tenant, name, url, kinds, queues, is_active, failures, failing_since, last_error, last_failed_at,
        last_delivered_at, created_at)', own),
      ('api_key', '(id, tenant, name, role, rate_limit, expires_at, revoked_at, last_used_at, created_at)', own)
    ) t (name, columns, seen)
  loop
    execute format('grant select %s on %s.%I to millrace_tenant', secured.columns, home, secured.name);
    -- What is secured already is not locked again.
    continue when (select c.relrowsecurity and (select count(*) from pg_policy p
        where p.polrelid = c.oid and p.polname in ('all_rows', 'tenant_rows')) = 2
      from pg_class c where c.oid = format('%s.%I', home, secured.name)::regclass);
    execute format('alter table %s.%I enable row level security', home, secured.name);
    execute format('drop policy if exists all_rows on %s.%I', home, secured.name);
    execute format('drop policy if exists tenant_rows on %s.%I', home, secured.name);
    execute format('create policy all_rows on %s.%I using (true) with check (true)', home, secured.name);
    execute format('create policy tenant_rows on %s.%I as restrictive to millrace_tenant using (%s)',
      home, secured.name, secured.seen);
  end loop;
  return true;
exception when insufficient_privilege or lock_not_available then
  return false; -- nothing of it has happened
end $function$;

CREATE OR REPLACE FUNCTION millrace.slot_of(queue integer, tenant text)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  own int;
begin
  select s.slot into own from millrace.tenant_slot s where s.queue_id = slot_of.queue and s.tenant = slot_of.tenant;
  if found then
    return own;
  end if;
  -- A paused tenant gets a slot that plain claims do not look into.
  update millrace.queue q set first_tenant = slot_of.tenant where q.id = slot_of.queue and q.first_tenant is null
    and not exists (select from millrace.tenant t where t.name = slot_of.tenant and t.paused_at is not null);
  own := case when found then 0 else nextval('millrace.tenant_slot_seq') end;
  insert into millrace.tenant_slot (queue_id, slot, tenant) values (slot_of.queue, own, slot_of.tenant)
  on conflict do nothing;
  if found and own > 0 then
    update millrace.queue q set fair = true where q.id = slot_of.queue and not q.fair;
    perform pg_notify(millrace.channel(), 'queues');
  end if;
  select s.slot into own from millrace.tenant_slot s where s.queue_id = slot_of.queue and s.tenant = slot_of.tenant;
  return own;
end $function$;

CREATE OR REPLACE FUNCTION millrace.slots_in_turn(q millrace.queue, p_weight smallint, first integer, most integer)
 RETURNS TABLE(slot integer, share integer)
 LANGUAGE plpgsql
 STABLE ROWS 10
AS $function$
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
end $function$;

CREATE OR REPLACE FUNCTION millrace.take_lanes(p_queue integer, p_tenant text, p_claims uuid[], p_robots text[], p_holders uuid[], p_lease_ms integer[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  all_of uuid := gen_random_uuid();
begin
  perform from millrace.claim_lanes(all_of, null, p_queue, cardinality(p_claims), null, true, p_tenant);
  with taken as (delete from millrace.claim c where c.id = all_of returning c.job_ids, c.lanes),
  item as materialized (
    select x.id, x.lane, x.i from taken t cross join unnest(t.job_ids, t.lanes) with ordinality x (id, lane, i)
  ),
  held as (
    update millrace.job j set claim_id = p_claims[i.i] from item i where j.id = i.id and j.claim_id = all_of
    returning j.id, j.max_runtime_ms
  )
  insert into millrace.claim (id, expires_at, deadline, job_ids, robot, holder, queue_id, lanes)
  select p_claims[i.i], now() + p_lease_ms[i.i] * interval '1 ms', now() + h.max_runtime_ms * interval '1 ms', array[i.id],
    p_robots[i.i], p_holders[i.i], p_queue, array[i.lane]
  from item i join held h on h.id = i.id;
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

CREATE OR REPLACE FUNCTION millrace.tally_dead_letters()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  gone millrace.dead_letter_change[];
  come millrace.dead_letter_change[];
begin
  if tg_op <> 'INSERT' then
    gone := array(select row(tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
      coalesce(meta->>'category', ''), error_fingerprint, -count(*))::millrace.dead_letter_change
      from before group by tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
        coalesce(meta->>'category', ''), error_fingerprint);
  end if;
  if tg_op <> 'DELETE' then
    come := array(select row(tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
      coalesce(meta->>'category', ''), error_fingerprint, count(*))::millrace.dead_letter_change
      from after group by tenant, queue_id, millrace.dead_letter_status(state, reprocessed_as), error_class,
        coalesce(meta->>'category', ''), error_fingerprint);
  end if;
  perform millrace.add_to_dead_letter_tally(gone || come);
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

CREATE OR REPLACE FUNCTION millrace.tell_audit()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform millrace.add_event('audit', new.tenant, json_build_object('no', new.no, 'actor', new.actor,
    'action', new.action, 'target', new.target));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_breaker()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform millrace.add_event(case new.state when 'OPEN' then 'breaker.opened' when 'CLOSED' then 'breaker.closed'
      else 'breaker.half_open' end,
    null, json_build_object('breaker', new.name, 'cause', new.cause, 'failures', new.failures));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_dead()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into millrace.event (kind, tenant, data)
  select 'job.dead', d.tenant, json_build_object('queue', q.name, 'queue_id', q.id, 'count', count(*), 'jobs',
    json_agg(json_build_object('id', d.id, 'type', d.type, 'error_class', d.error_class) order by d.place)
      filter (where d.place <= 10))
  from (select a.*, row_number() over (partition by a.queue_id, a.tenant order by a.id) as place from after a) d
  join millrace.queue q on q.id = d.queue_id
  where d.state = 'dead' group by d.tenant, q.id, q.name order by q.id, d.tenant;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_leader()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform millrace.add_event('leader.changed', null, json_build_object('term', new.term, 'in_office', new.holder is not null));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_queue()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform millrace.add_event(case
      when tg_op = 'INSERT' then 'queue.created'
      when new.deleted_at is not null and old.deleted_at is null then 'queue.deleted'
      when new.paused_at is not null and old.paused_at is null then 'queue.paused'
      when new.paused_at is null and old.paused_at is not null then 'queue.resumed'
      else 'queue.changed' end,
    new.tenant, json_build_object('queue', case when tg_op = 'UPDATE' and new.deleted_at is not null then old.name else new.name end,
      'queue_id', new.id, 'is_active', new.is_active, 'paused', new.paused_at is not null));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_repaired()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into millrace.event (kind, tenant, data)
  select d.kind, d.tenant, json_build_object('queue', q.name, 'queue_id', q.id, 'count', count(*), 'jobs',
    json_agg(json_build_object('id', d.id, 'type', d.type, 'new_id', d.reprocessed_as) order by d.place)
      filter (where d.place <= 10))
  from (
    select a.id, a.type, a.tenant, a.queue_id, a.reprocessed_as, k.kind,
      row_number() over (partition by k.kind, a.queue_id, a.tenant order by a.id) as place
    from after a join before b on b.id = a.id
    cross join lateral (select case
      when a.reprocessed_as is distinct from b.reprocessed_as then 'job.reprocessed'
      when a.state = 'discarded' and b.state = 'dead' then 'job.discarded' end as kind) k
    where k.kind is not null
  ) d
  join millrace.queue q on q.id = d.queue_id
  group by d.kind, d.tenant, q.id, q.name order by q.id, d.tenant;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_tenant()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform millrace.add_event(case when new.paused_at is null then 'tenant.resumed' else 'tenant.paused' end,
    new.name, json_build_object('tenant', new.name));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_trigger()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into millrace.event (kind, tenant, data)
  select d.kind, d.tenant, json_build_object('count', count(*), 'triggers',
    json_agg(json_build_object('id', d.id, 'name', d.name, 'failures', d.failures, 'job_id', d.job_id) order by d.place)
      filter (where d.place <= 10))
  from (
    select a.id, a.name, a.tenant, a.failures, k.kind,
      case k.kind when 'trigger.fired' then a.last_job_id end as job_id,
      row_number() over (partition by k.kind, a.tenant order by a.id) as place
    from after a join before b on b.id = a.id
    cross join lateral (select case
      when a.failures > b.failures then 'trigger.failed'
      when a.last_fired_at is distinct from b.last_fired_at then 'trigger.fired' end as kind) k
    where k.kind is not null
  ) d
  group by d.kind, d.tenant order by d.tenant;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tell_webhook()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform millrace.add_event(case when new.failing_since is null then 'webhook.recovered' else 'webhook.failing' end,
    new.tenant, json_build_object('webhook_id', new.id, 'name', new.name));
  return null;
end $function$;

CREATE OR REPLACE FUNCTION millrace.tenant_of(job_id uuid)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select tenant from millrace.job where id = $1
  union all select tenant from millrace.scheduled_job where id = $1
  union all select tenant from millrace.dead_job where id = $1
  union all select tenant from millrace.history where id = $1
  limit 1
$function$;

CREATE OR REPLACE FUNCTION millrace.throttle_gate(queue integer, lane integer, most integer, window_ms integer, at timestamp with time zone, OUT room integer, OUT free_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  slice_ms bigint := ceil(window_ms / 10.0);
  now_slice bigint := floor(extract(epoch from at) * 1000)::bigint / slice_ms;
begin
  select most - coalesce(sum(c.starts), 0) into room from millrace.start_count c
  where c.queue_id = throttle_gate.queue and c.lane = throttle_gate.lane and c.slice >= now_slice - 10;
  if room < 1 then
    select to_timestamp((max(s.slice) + 11) * slice_ms / 1000.0) into free_at from (
      select c.slice, sum(c.starts) over (order by c.slice desc) as later from millrace.start_count c
      where c.queue_id = throttle_gate.queue and c.lane = throttle_gate.lane and c.slice >= now_slice - 10
    ) s where s.later >= most;
  end if;
end $function$;

CREATE OR REPLACE FUNCTION millrace.use_lanes(queue integer)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  update millrace.queue q set laned = true where q.id = use_lanes.queue and not q.laned;
  perform pg_notify(millrace.channel(), 'queues') where found;
end $function$;
