-- What else a definition says about its jobs, so that a trigger's jobs are what an enqueue would make.

alter table millrace.trigger
  add column job_payload_version text,
  add column job_expires_in_ms bigint;
