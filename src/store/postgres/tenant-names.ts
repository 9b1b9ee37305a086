// Who is a tenant: whoever has jobs, queues, keys or settings. There is no table of all of them, so the
// next name is looked up in each index, and none of them is read as a whole.

import { statement } from "./statement.ts";

const indexed = ["job", "scheduled_job", "dead_job", "history"];
const named = ["queue", "tenant_slot", "api_key", "trigger"];

const next = (after: string) => `(select min(x.name) from (
    (select t.name from millrace.tenant t where t.name > ${after} order by t.name limit 1)
    union all ${[
      ...indexed.map((table) => [table, " and t.tenant <> 'default'"]),
      ...named.map((table) => [table, ""]),
    ]
      .map(
        ([table, more]) =>
          `(select t.tenant from millrace.${table} t where t.tenant > ${after}${more} order by t.tenant limit 1)`,
      )
      .join("\n    union all ")}
    union all select 'default' where 'default' > ${after}
  ) x)`;

export const tenantNames = statement(
  "tenant_names",
  `with recursive found (name, place) as (
    select ${next("$1::text")}, 1
    union all
    select ${next("f.name")}, f.place + 1 from found f where f.name is not null and f.place < $2::int
  )
  select name from found where name is not null order by place`,
);

export const isTenant = statement(
  "is_tenant",
  `select $1::text = 'default' or exists (select from millrace.tenant t where t.name = $1::text)
    or ${[
      ...indexed.map((table) => [table, " and t.tenant <> 'default'"]),
      ...named.map((table) => [table, ""]),
    ]
      .map(
        ([table, more]) =>
          `exists (select from millrace.${table} t where t.tenant = $1::text${more})`,
      )
      .join("\n    or ")} as known`,
);
