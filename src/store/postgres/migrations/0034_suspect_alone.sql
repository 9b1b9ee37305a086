-- A death is a suspect's doing if it ran, and nothing began beside it: its holder names its claim here before it begins,
-- and in shared_claim before others do. One that is named nowhere has not begun, and is not to blame.
-- Versions that do not tell this leave spared empty.

alter table millrace.lease add column alone_claim uuid,
  alter column spared drop not null, alter column spared drop default;
update millrace.lease set spared = null;
