// What the address of the jobs page says, as the service understands it.

import type { Query } from "../api/service.ts";

export interface JobSearch {
  readonly state?: string;
  readonly queue?: string;
  readonly type?: string;
  readonly tenant?: string;
  readonly by?: string;
  readonly find?: string;
  readonly since?: string;
  readonly cursor?: string;
}

export const findBy = {
  id: "Job id",
  reference: "Reference",
  idempotency_key: "Idempotency key",
  correlation_id: "Correlation id",
  label: "Label, name:value",
} as const;

const sinceMs: Readonly<Record<string, number>> = {
  "15m": 900_000,
  "1h": 3_600_000,
  "24h": 86_400_000,
  "7d": 604_800_000,
};

export const states = [
  ...["ready", "scheduled", "running", "completed"],
  ...["dead", "cancelled", "expired", "discarded", "deleted"],
] as const;

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** What cannot be what it is searched as, in words; null: it may be. */
export function problemOf({ by, find }: JobSearch): string | null {
  const text = find?.trim() ?? "";
  if (text === "") return null;
  if (by === "id" && !uuid.test(text))
    return `“${text}” is not a job id: one looks like ${sampleId}.`;
  if (by === "label" && !/^[^:]+:./.test(text))
    return `“${text}” is not a label: one looks like order.id:42.`;
  return null;
}

const sampleId = "0198f3c2-7a41-7c55-9d02-6f1be3a8d950";

/** Times are rounded, so that the question stays the same for a while and its answer can be kept. */
export function toQuery(search: JobSearch, now: number): Query {
  const { find, state, queue, type, tenant, since, cursor } = search;
  const by = search.by !== undefined && search.by in findBy ? search.by : guess(find);
  const span = since === undefined ? undefined : sinceMs[since];
  const from = span === undefined ? undefined : Math.floor((now - span) / 60_000) * 60_000;
  return {
    ...{ state, queue, type, tenant_id: tenant, cursor, limit: 50 },
    ...(find === undefined ? {} : { [by]: find.trim() }),
    ...(from === undefined ? {} : { created_from: new Date(from).toISOString() }),
  };
}

const guess = (find: string | undefined): string =>
  find !== undefined && uuid.test(find.trim()) ? "id" : "reference";

export function describe(search: JobSearch): string {
  const parts = [
    search.state?.replaceAll(",", ", "),
    search.queue && `queue ${search.queue}`,
    search.type && `type ${search.type}`,
    search.tenant && `tenant ${search.tenant}`,
    search.find && `“${search.find}”`,
    search.since && `last ${search.since}`,
  ].filter(Boolean);
  return parts.length === 0 ? "all jobs" : parts.join(" · ");
}
