-- From here on a job's own row may lack its payload, and a version that knows no other place would run it
-- without: such versions are shut out. A new schema begins here; others are brought here by
-- `millrace migrate --finish`.

alter table millrace.job alter column payload drop not null;
alter table millrace.scheduled_job alter column payload drop not null;
alter table millrace.dead_job alter column payload drop not null;
alter table millrace.history alter column payload drop not null;
