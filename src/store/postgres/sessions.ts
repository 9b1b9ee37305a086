// Sessions of the dashboard. Signing in and out leave an audit entry; hashes are not in it.

import type { OpenSession, SessionStore } from "../session.ts";
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

/** Of one key; whoever signs in once more ends the oldest. */
const mostSessions = 50;

const create = statement(
  "create_session",
  `with made as (
    insert into millrace.session (id_hash, key_id, proof, expires_at, idle_until)
    values ($1::bytea, $2::uuid, $3::bytea, now() + $4::float8 * interval '1 ms', now() + $5::float8 * interval '1 ms')
    returning key_id, proof, expires_at
  ),
  too_many as (
    delete from millrace.session where id_hash in (
      select id_hash from millrace.session where key_id = $2::uuid
      order by created_at desc, id_hash offset $8::int - 1)
  ),
  audited as (
    insert into millrace.audit (tenant, actor, action, target)
    select $7::text, $6::text, 'session_start', key_id::text from made
  )
  select * from made`,
);

const open = statement(
  "open_session",
  `select key_id, proof, expires_at from millrace.session
  where id_hash = $1::bytea and expires_at > now() and idle_until > now()`,
);

const touch = statement(
  "touch_session",
  `update millrace.session set idle_until = now() + $2::float8 * interval '1 ms' where id_hash = $1::bytea`,
);

const end = statement(
  "end_session",
  `with gone as (
    delete from millrace.session where id_hash = $1::bytea returning key_id
  )
  insert into millrace.audit (tenant, actor, action, target)
  select $3::text, $2::text, 'session_end', key_id::text from gone`,
);

type SessionRow = { key_id: string; proof: Buffer; expires_at: Date };

const toSession = ({ key_id, proof, expires_at }: SessionRow): OpenSession => ({
  keyId: key_id,
  proof,
  expiresAt: expires_at,
});

export function createSessionStore(database: Database): SessionStore {
  return {
    async create({ idHash, keyId, proof, lifeMs, idleMs }, { actor, tenant }) {
      const values = [idHash, keyId, proof, lifeMs, idleMs, actor, tenant, mostSessions];
      const [row] = await database.query<SessionRow>(create, values);
      if (row === undefined) throw new Error("the session could not be made");
      return toSession(row);
    },
    async open(idHash) {
      const [row] = await database.query<SessionRow>(open, [idHash]);
      return row === undefined ? null : toSession(row);
    },
    touch: async (idHash, idleMs) => void (await database.query(touch, [idHash, idleMs])),
    end: async (idHash, { actor, tenant }) =>
      void (await database.query(end, [idHash, actor, tenant])),
  };
}
