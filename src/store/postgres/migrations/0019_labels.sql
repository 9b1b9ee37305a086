-- Searchable payload fields: one small row per label of a job, written with the job and gone with its
-- record. Jobs without labels pay nothing for it.

create table millrace.job_label (
  tenant text not null,
  name text not null,
  value text not null, -- as text; what is longer than 200 characters as its SHA-256
  job_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (tenant, name, value, job_id)
);
create index job_label_job on millrace.job_label (job_id);
