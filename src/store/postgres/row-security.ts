// Reading as a tenant: see docs/design/row-security.md.

import { type Statement, statement } from "./statement.ts";

// The setting's name in two parts: together they would be taken for the schema's.
export const enterTenant = statement(
  "enter_tenant",
  `select set_config('millrace' || '.tenant', $1::text, true), set_config('transaction_read_only', 'on', true),
    set_config('role', 'millrace_tenant', true)`,
);

export const rowSecurity = statement(
  "row_security",
  `select exists (
      select from pg_roles r where r.rolname = 'millrace_tenant' and pg_has_role(current_user, r.oid, 'member')
    ) and (
      select count(*) = 3 from pg_policy p where p.polname = 'tenant_rows'
        and p.polrelid in ('millrace.job'::regclass, 'millrace.api_key'::regclass, 'millrace.long_payload'::regclass)
    ) as is_on`,
);

const known = new WeakMap<Statement, Statement>();

/** Under a name of its own: a plan belongs to the role it was made for. */
export function scoped(source: Statement): Statement {
  let own = known.get(source);
  if (own === undefined) {
    own = statement(`t_${source.name}`, source.text);
    known.set(source, own);
  }
  return own;
}
