// Your own transaction as a `tx` for enqueue. A client of `pg` is one as it is; these make one from
// what other libraries hand you inside a transaction. None of them is imported here.

import type { Transaction } from "./store/store.ts";

export type { Transaction } from "./store/store.ts";

/** The `sql` that postgres.js gives to the function in `sql.begin(…)`. */
export interface PostgresJsTransaction {
  unsafe(text: string, values: never[]): PromiseLike<ArrayLike<unknown>>;
}

export function fromPostgresJs(sql: PostgresJsTransaction): Transaction {
  return {
    query: async (text, values) =>
      Array.from(await sql.unsafe(text, values as never[]), (row) => withPlainNames(row)),
  };
}

/** The `trx` of Kysely's `db.transaction().execute(…)` or `db.startTransaction()`. */
export interface KyselyTransaction {
  // Plugins may rename the columns of an answer, and these columns are ours.
  withoutPlugins(): { executeQuery(query: never): PromiseLike<{ readonly rows: unknown[] }> };
}

export function fromKysely(trx: KyselyTransaction): Transaction {
  return {
    query: (sql, parameters) => {
      const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
      const compiled = { sql, parameters, query, queryId: { queryId: "millrace" } };
      return trx.withoutPlugins().executeQuery(compiled as never);
    },
  };
}

/** The `tx` of Drizzle's `db.transaction(…)`, on node-postgres as well as on postgres.js. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
}

export function fromDrizzle(tx: DrizzleTransaction): Transaction {
  return {
    query: async (text, values) => {
      // What Drizzle asks of an `sql` object: to show itself, and to become text and parameters.
      const query = { getSQL: () => query, toQuery: () => ({ sql: text, params: values }) };
      const answer = await tx.execute(query as never);
      return Array.isArray(answer) ? answer.map(withPlainNames) : answer;
    },
  };
}

/** postgres.js may be told to answer in camel, Pascal or kebab case; our columns are snake_case. */
function withPlainNames(row: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row as object).map(([name, value]) => [plainName(name), value]),
  );
}

const plainName = (name: string) =>
  name
    .replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? "" : "_"}${letter.toLowerCase()}`)
    .replaceAll("-", "_");
