-- People who signed in to the dashboard. Why it looks like this: docs/design/http.md.

create table millrace.session (
  -- SHA-256 of the id; the id itself is in the browser's cookie and nowhere else.
  id_hash bytea primary key check (length(id_hash) = 32),
  key_id uuid not null, -- all zeros and a one: the key of the environment
  -- Made of the id and of the secret that signed in: without that secret the session is over.
  proof bytea not null check (length(proof) = 32),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  idle_until timestamptz not null
) with (fillfactor = 70);
create index session_key on millrace.session (key_id, created_at);
