// The office of leader: elections and renewals, and the lock that every write of a leader begins with.

import { MillraceError } from "../../domain/errors.ts";
import type { LeaderSession, Leadership } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Database } from "./database.ts";
import { isRetryable } from "./failures.ts";
import { type Runner, type RunStatement, statement } from "./statement.ts";

// A holder who asks again has lost the answer to its first election, and never wrote under that term.
const elect = statement(
  "elect_leader",
  `update millrace.leader
  set term = term + 1, holder = $1::uuid, elected_at = now(), expires_at = now() + $2::int * interval '1 ms'
  where expires_at <= now() or holder = $1::uuid returning term::float8 as term`,
);

const renew = statement(
  "renew_leader",
  `update millrace.leader set expires_at = now() + $2::int * interval '1 ms'
  where term = $1::bigint and expires_at > now() returning true as renewed`,
);

const resign = statement(
  "resign_leader",
  "update millrace.leader set expires_at = now(), holder = null where term = $1::bigint and expires_at > now()",
);

const read = statement(
  "read_leader",
  `select term::float8 as term, holder, elected_at as "electedAt", expires_at > now() as "inOffice" from millrace.leader`,
);

// A process that is stopped between two statements would keep its lock, and nobody could be elected.
const fence = statement(
  "fence_leader",
  `select set_config('idle_in_transaction_session_timeout', $2::text, true), set_config('statement_timeout', $2::text, true)
  from millrace.leader where term = $1::bigint for key share`,
);

async function electLeader(
  connection: Connection,
  holder: string,
  ttlMs: number,
): Promise<number | null> {
  try {
    const rows = await connection.query<{ term: number }>(elect, [holder, String(ttlMs)]);
    return rows[0]?.term ?? null;
  } catch (error) {
    // Somebody still writes under the old term, or another candidate was quicker.
    if (isRetryable(error)) return null;
    throw error;
  }
}

async function renewLeader(connection: Connection, term: number, ttlMs: number): Promise<boolean> {
  return (await connection.query(renew, [String(term), String(ttlMs)])).length > 0;
}

async function resignLeader(connection: Connection, term: number): Promise<void> {
  await connection.query(resign, [String(term)]);
}

export function leaderSession(connection: Connection): LeaderSession {
  return {
    elect: (holder, ttlMs) => electLeader(connection, holder, ttlMs),
    renew: (term, ttlMs) => renewLeader(connection, term, ttlMs),
    resign: (term) => resignLeader(connection, term),
    close: () => connection.close(),
  };
}

export async function readLeadership(
  reader: Pick<Database, "query"> | Pick<Connection, "query">,
): Promise<Leadership> {
  const [row] = await reader.query<Leadership & { term: number }>(read);
  return row ?? { term: 0, holder: null, electedAt: null, inOffice: false };
}

/** How long a leader's transaction may run or idle: over before its term could expire. */
export const fencePatienceMs = (leaderTtlMs: number): number => Math.ceil(leaderTtlMs / 2);

/** To be called first in a transaction; what follows is written under this term or not at all. */
async function lockTerm(query: RunStatement, term: number, patienceMs: number): Promise<void> {
  const rows = await query(fence, [String(term), String(patienceMs)]);
  if (rows.length > 0) return;
  throw new MillraceError("NOT_LEADER", `Term ${term} is over.`, { details: { term } });
}

/** A transaction of the leader of this term, for the store's own statements. */
export function asLeader<T>(
  database: Database,
  term: number,
  patienceMs: number,
  body: (query: RunStatement) => Promise<T>,
): Promise<T> {
  return database.transaction(async (query) => {
    await lockTerm(query, term, patienceMs);
    return body(query);
  });
}

/** Runs a body in one transaction: a plain one, or one that a leader's term fences. */
export type InTransaction = <T>(body: (run: RunStatement) => Promise<T>) => Promise<T>;

/** The same on a connection of its own. */
export const inTerm =
  (connection: Connection, term: number, patienceMs: number): InTransaction =>
  (body) =>
    connection.transaction(async (query) => {
      await lockTerm(query, term, patienceMs);
      return body(query);
    });

/** Each statement is a leader's transaction of its own. */
export function fenced(connection: Connection, term: number, patienceMs: number): Runner {
  return {
    query: (source, values = []) =>
      connection.transaction(async (query) => {
        await lockTerm(query, term, patienceMs);
        return (await query(source, values)) as never;
      }),
    rows: (source, values) =>
      connection.transaction(async (query, rows) => {
        await lockTerm(query, term, patienceMs);
        return rows(source, values);
      }),
  };
}
