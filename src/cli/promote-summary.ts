// What a copy holds, in the words of the people whose it is; the tables are for --json.

import type { TableCount } from "../store/postgres/transfer.ts";
import { type Column, table } from "./text.ts";

const kinds: readonly (readonly [table: string, what: string])[] = [
  ["job", "jobs that wait or run"],
  ["scheduled_job", "jobs for later"],
  ["history", "jobs that have ended"],
  ["dead_job", "dead letters"],
  ["queue", "queues"],
  ["trigger", "triggers"],
  ["breaker", "breakers"],
  ["webhook", "webhooks"],
  ["api_key", "API keys"],
  ["audit", "audit entries"],
];

interface Kind {
  readonly what: string;
  readonly rows: number;
}

const columns: readonly Column<Kind>[] = [
  { title: "WHAT", value: ({ what }) => what },
  { title: "COUNT", value: ({ rows }) => rows.toLocaleString("en"), right: true },
];

export const sum = (counts: readonly { readonly rows: number }[]): number =>
  counts.reduce((total, { rows }) => total + rows, 0);

export function summaryOf(counts: readonly TableCount[]): string {
  const named = kinds.map(([name, what]) => ({
    what,
    rows: sum(counts.filter((one) => one.table === name)),
  }));
  const others = { what: "counters, names and the like", rows: sum(counts) - sum(named) };
  return table(
    columns,
    [...named, others].filter(({ rows }) => rows > 0),
  );
}
