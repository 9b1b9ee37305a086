// Keys of the HTTP service. Changes leave an audit entry; hashes are not in it.

import type { ApiKey, ApiKeyStore, LiveApiKey, NewApiKey, Role } from "../api-key.ts";
import type { Database, Reader } from "./database.ts";
import { statement } from "./statement.ts";

const columns = `id, tenant, name, role, rate_limit, expires_at, revoked_at, last_used_at, created_at`;

const audited = (action: string, actor: string) => `audited as (
    insert into millrace.audit (tenant, actor, action, target)
    select tenant, ${actor}::text, '${action}', id::text from changed
  )`;

const create = statement(
  "create_api_key",
  `with changed as (
    insert into millrace.api_key (id, tenant, name, role, secret_hash, rate_limit, expires_at)
    values ($1::uuid, $2::text, $3::text, $4::text, $5::bytea, $6::int, $7::timestamptz) returning ${columns}
  ), ${audited("api_key_create", "$8")}
  select * from changed`,
);

const list = statement(
  "list_api_keys",
  `select ${columns} from millrace.api_key where $1::text is null or tenant = $1::text order by id`,
);

const find = statement(
  "find_api_key",
  `select ${columns} from millrace.api_key where id = $1::uuid`,
);

const open = statement(
  "open_api_key",
  `select ${columns}, secret_hash, case when old_secret_until > now() then old_secret_hash end as old_secret_hash
  from millrace.api_key
  where id = $1::uuid and revoked_at is null and (expires_at is null or expires_at > now())`,
);

const rotate = statement(
  "rotate_api_key",
  `with changed as (
    update millrace.api_key set old_secret_hash = secret_hash, secret_hash = $2::bytea,
      old_secret_until = now() + $3::float8 * interval '1 ms'
    where id = $1::uuid and revoked_at is null returning ${columns}
  ), ${audited("api_key_rotate", "$4")}
  select * from changed`,
);

const revoke = statement(
  "revoke_api_key",
  `with changed as (
    update millrace.api_key set revoked_at = now() where id = $1::uuid and revoked_at is null returning ${columns}
  ), ${audited("api_key_revoke", "$2")}
  select * from changed`,
);

const noteUse = statement(
  "note_api_key_use",
  `update millrace.api_key set last_used_at = now() where id = $1::uuid`,
);

interface KeyRow {
  id: string;
  tenant: string | null;
  name: string;
  role: Role;
  rate_limit: number | null;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
  created_at: Date;
}

const toKey = (row: KeyRow): ApiKey => ({
  id: row.id,
  tenant: row.tenant,
  name: row.name,
  role: row.role,
  rateLimit: row.rate_limit,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
  lastUsedAt: row.last_used_at,
  createdAt: row.created_at,
});

export const createKeyReads = (reader: Reader): Pick<ApiKeyStore, "list" | "find"> => ({
  list: async (tenant) => (await reader.query<KeyRow>(list, [tenant])).map(toKey),
  async find(id) {
    const [row] = await reader.query<KeyRow>(find, [id]);
    return row === undefined ? null : toKey(row);
  },
});

export function createApiKeyStore(database: Database): ApiKeyStore {
  const one = async (...call: Parameters<Database["query"]>): Promise<ApiKey | null> => {
    const [row] = await database.query<KeyRow>(...call);
    return row === undefined ? null : toKey(row);
  };
  return {
    async create(key: NewApiKey, actor: string) {
      const { id, tenant, name, role, secretHash, rateLimit, expiresAt } = key;
      const values = [id, tenant, name, role, secretHash, rateLimit, expiresAt, actor];
      const made = await one(create, values);
      if (made === null) throw new Error("the key could not be made");
      return made;
    },
    ...createKeyReads(database),
    open: (id) => openKey(database, id),
    rotate: (id, secretHash, overlapMs, actor) => one(rotate, [id, secretHash, overlapMs, actor]),
    async revoke(id, actor) {
      return (await one(revoke, [id, actor])) ?? one(find, [id]);
    },
    noteUse: async (id) => void (await database.query(noteUse, [id])),
  };
}

async function openKey(database: Database, id: string): Promise<LiveApiKey | null> {
  type Row = KeyRow & { secret_hash: Buffer; old_secret_hash: Buffer | null };
  const [row] = await database.query<Row>(open, [id]);
  if (row === undefined) return null;
  const { secret_hash, old_secret_hash } = row;
  const secretHashes = old_secret_hash === null ? [secret_hash] : [secret_hash, old_secret_hash];
  return { ...toKey(row), secretHashes };
}
