// Events are written by triggers, beside what they tell of. Their place in the order is given here, after
// their commit: see docs/design/events.md.

import type { EventStore, StoredEvent } from "../event.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

const anyWaits = statement(
  "any_event_waits",
  "select exists (select from millrace.event where no is null) as waits",
);

const lock = statement(
  "lock_event_order",
  "select pg_advisory_xact_lock(hashtextextended($1::text, 0))",
);

const arrange = statement(
  "arrange_events",
  `with placed as materialized (
    select id, nextval('millrace.event_no') as no
    from (select id from millrace.event where no is null order by id limit $1::int) waiting
  )
  update millrace.event e set no = placed.no from placed where e.id = placed.id and e.no is null
  returning e.id`,
);

const after = statement(
  "list_events_after",
  `select no::float8, at, kind, tenant, data from millrace.event
  where no > $1::bigint order by no limit $2::int`,
);

const ends = statement(
  "read_event_ends",
  `select coalesce(min(no), 0)::float8 as first, coalesce(max(no), 0)::float8 as last from millrace.event`,
);

const atOnce = 1_000;

export function createEventStore(database: Database): EventStore {
  return {
    async arrange() {
      for (let placed = atOnce; placed === atOnce; ) {
        const [row] = await database.query<{ waits: boolean }>(anyWaits);
        if (row?.waits !== true) return;
        // The lock comes first and ends with the commit: who places next sees all that was placed.
        placed = await database.transaction(async (query) => {
          await query(lock, [`millrace.events.${database.schema}`]);
          return (await query(arrange, [atOnce])).length;
        });
      }
    },
    after: (no, limit) => database.query<StoredEvent & Record<string, unknown>>(after, [no, limit]),
    async ends() {
      const [row] = await database.query<{ first: number; last: number }>(ends);
      return row ?? { first: 0, last: 0 };
    },
  };
}
