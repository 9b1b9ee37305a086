-- What a worker offers to take straight from a producer's flush: see docs/design/handover.md. Part of its lease,
-- so that it ends with it. Processes of the version before leave it alone and are offered nothing.

alter table millrace.lease add column offer_id uuid, add column offer json;
