-- Workers of one process die together. While a suspect of one of them runs alone, the leases of the others say so here,
-- and what they hold is not charged for a death.

alter table millrace.lease add column spared boolean not null default false;
