// What was enqueued, by whomever and in whichever way: a trigger in the throw-away database notes
// each job the first time it appears there. A transaction that is rolled back leaves no note.

import type { Job } from "../domain/job.ts";
import type { Database } from "../store/postgres/database.ts";
import { statement } from "../store/postgres/statement.ts";
import type { Store } from "../store/store.ts";
import type { EnqueuedJob } from "./enqueued-job.ts";

const keepRecord = `
  create table millrace.enqueue_record (
    place bigint generated always as identity,
    id uuid primary key,
    delay_ms float8 not null
  );
  create function millrace.record_enqueue() returns trigger language plpgsql as $$
  declare
    delay_ms float8 := 0;
  begin
    if tg_table_name = 'scheduled_job' then
      delay_ms := round(extract(epoch from new.due_at - new.created_at) * 1000);
    end if;
    insert into millrace.enqueue_record (id, delay_ms) values (new.id, delay_ms) on conflict do nothing;
    return null;
  end $$;
  create trigger record_enqueue after insert on millrace.job
    for each row execute function millrace.record_enqueue();
  create trigger record_enqueue after insert on millrace.scheduled_job
    for each row execute function millrace.record_enqueue();`;

const readRecord = statement(
  "read_enqueue_record",
  "select id, delay_ms from millrace.enqueue_record order by place",
);

const mostPerRead = 1_000;

export async function startRecord(database: Database): Promise<void> {
  await database.execute(keepRecord);
}

/** In the order of their enqueueing. */
export async function readEnqueued(database: Database, store: Store): Promise<EnqueuedJob[]> {
  const notes = await database.query<{ id: string; delay_ms: number }>(readRecord);
  const ids = notes.map(({ id }) => id);
  const jobs = new Map<string, Job>();
  for (let from = 0; from < ids.length; from += mostPerRead) {
    const found = await store.find(ids.slice(from, from + mostPerRead));
    for (const job of found) jobs.set(job.id, job);
  }
  return notes.flatMap(({ id, delay_ms }) => {
    const job = jobs.get(id);
    return job === undefined ? [] : [{ ...job, delayMs: delay_ms }];
  });
}
