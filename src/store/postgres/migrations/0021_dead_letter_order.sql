-- Dead letters of all tenants, the newest first, without sorting all of them.

create index dead_job_finished on millrace.dead_job (finished_at, id);
