// Reading the audit trail, and adding to it what no other statement writes itself.

import type { AuditEntry, AuditHead, AuditLink, AuditStore } from "../audit.ts";
import type { Reader } from "./database.ts";
import { statement } from "./statement.ts";

const add = statement(
  "add_audit",
  `insert into millrace.audit (tenant, actor, action, target, reason, details)
  values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::json)`,
);

const listWhere = (tenant: string) =>
  `select no::float8, at, tenant, actor, action, target, reason, details, encode(hash, 'hex') as hash
  from millrace.audit
  where ${tenant} and ($2::text is null or action = $2::text)
    and ($3::text is null or target = $3::text) and no < $4::bigint
  order by no desc limit $5::int`;

const listAll = statement("list_audit", listWhere("$1::text is null"));
const listOfTenant = statement("list_audit_of_tenant", listWhere("tenant = $1::text"));

const links = statement(
  "list_audit_links",
  `select no::float8, array[no::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), tenant, actor,
    action, target, reason, details::text] as fields, encode(hash, 'hex') as hash
  from millrace.audit where no > $1::bigint order by no limit $2::int`,
);

const head = statement(
  "read_audit_head",
  `select no::float8, encode(hash, 'hex') as hash from millrace.audit_head`,
);

const pruned = statement(
  "read_audit_pruned",
  `select (details->>'through')::float8 as no, details->>'hash' as hash
  from millrace.audit where action = 'audit_pruned' order by millrace.audit.no desc limit 1`,
);

const afterAll = "9223372036854775807";

export function createAuditStore(database: Reader): AuditStore {
  return {
    async add({ tenant, actor, action, target, reason, details }) {
      const json = details === undefined ? null : JSON.stringify(details);
      await database.query(add, [tenant, actor, action, target, reason ?? null, json]);
    },
    list: ({ tenant, action, target }, before, limit) =>
      database.query<AuditEntry & Record<string, unknown>>(
        tenant === undefined ? listAll : listOfTenant,
        [tenant ?? null, action ?? null, target ?? null, before ?? afterAll, limit],
      ),
    links: (after, limit) =>
      database.query<AuditLink & Record<string, unknown>>(links, [after, limit]),
    async head() {
      const [row] = await database.query<AuditHead & Record<string, unknown>>(head);
      return row ?? { no: 0, hash: "" };
    },
    async pruned() {
      const [row] = await database.query<AuditHead & Record<string, unknown>>(pruned);
      return row ?? null;
    },
  };
}
