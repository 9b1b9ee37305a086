-- A death is a suspect's doing for certain only if it ran, and nothing else did: its holder names its claim here before
-- it begins, or in shared_claim where others run on. One that is named nowhere has not begun, and is not to blame.
-- Versions that do not tell this leave spared empty.

alter table millrace.lease add column alone_claim uuid,
  alter column spared drop not null, alter column spared drop default;
update millrace.lease set spared = null;
