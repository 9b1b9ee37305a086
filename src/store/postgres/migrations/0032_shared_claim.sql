-- While somebody who was there when a process died runs beside others again, nobody can say who of them kills the next
-- process. Its holder names its claim here before the others start, and a death then charges all of them.

alter table millrace.lease add column shared_claim uuid;
