-- While a receiver fails, its deliveries take turns: none before this.
alter table millrace.webhook add column retry_at timestamptz;
