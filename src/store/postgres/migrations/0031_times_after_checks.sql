-- `enqueue` worked out its times before it looked at its arguments, so a delay beyond what a time can hold ended in
-- PostgreSQL's own error instead of MR400.

do $$
begin
  execute replace(replace(pg_get_functiondef('millrace.enqueue'::regproc),
    $before$  due timestamptz := case when enqueue.delay > interval '0' then now() + enqueue.delay end;
  expiry timestamptz := now() + enqueue.expires_in;
$before$,
    $after$  due timestamptz;
  expiry timestamptz;
$after$),
    $before$  target := millrace.ensure_queue(enqueue.queue);
$before$,
    $after$  due := case when enqueue.delay > interval '0' then now() + enqueue.delay end;
  expiry := now() + enqueue.expires_in;
  target := millrace.ensure_queue(enqueue.queue);
$after$);
end $$;
