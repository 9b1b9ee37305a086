// Everything the pages read. `topic` says which events of the service make an answer old.

import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Breaker, Explanation, Tenant } from "./agreed.ts";
import type * as answers from "./answers.ts";
import { get, type Query } from "./service.ts";

export type Topic =
  | "counts"
  | "jobs"
  | "dead-letters"
  | "queues"
  | "triggers"
  | "workers"
  | "breakers"
  | "audit"
  | "tenants";

declare module "@tanstack/react-query" {
  interface Register {
    queryMeta: { readonly topics?: readonly Topic[] };
  }
}

interface Read {
  readonly path: string;
  readonly query?: Query;
  readonly topics?: readonly Topic[];
  readonly staleMs?: number;
  /** A list stays until the next one is there; one thing must never stand under another's name. */
  readonly isList?: boolean;
}

const read = <T>({ path, query = {}, topics = [], staleMs = 1_000, isList }: Read) =>
  queryOptions({
    queryKey: [path, query],
    queryFn: ({ signal }) => get<T>(path, query, signal),
    meta: { topics },
    staleTime: staleMs,
    ...(isList ? { placeholderData: keepPreviousData } : {}),
  });

export const statistics = (minutes = 60, queue_id?: number) =>
  read<answers.Statistics>({
    path: "/api/jobs/admin/queue/statistics",
    query: { minutes, queue_id },
    topics: ["counts"],
  });

export const cluster = () => read<answers.Cluster>({ path: "/api/cluster", topics: ["workers"] });

export const workers = () => read<answers.Workers>({ path: "/api/workers", topics: ["workers"] });

/** A page is what a bounded walk finds, and may be short: then the walk goes on, for a while. */
async function findJobs(query: Query, signal: AbortSignal): Promise<answers.JobPage> {
  const found: answers.JobSummary[] = [];
  let { cursor } = query;
  for (let walks = 1; ; walks++) {
    const page = await get<answers.JobPage>("/api/jobs", { ...query, cursor }, signal);
    found.push(...page.jobs);
    const isEnough = found.length >= enough || walks >= mostWalks;
    if (page.next_cursor === null || isEnough) return { ...page, jobs: found };
    cursor = page.next_cursor;
  }
}

const enough = 25;
const mostWalks = 10;

export const jobs = (query: Query) =>
  queryOptions({
    queryKey: ["/api/jobs", query],
    queryFn: ({ signal }) => findJobs(query, signal),
    meta: { topics: ["counts", "jobs"] as const },
    staleTime: 1_000,
    placeholderData: keepPreviousData,
  });

export const job = (id: string) =>
  read<answers.FullJob>({ path: `/api/jobs/${id}`, topics: ["counts", "jobs"] });

export const explanation = (id: string) =>
  read<Explanation>({ path: `/api/jobs/${id}/explain`, topics: ["counts", "jobs"] });

export const deadLetters = (query: Query) =>
  read<answers.DeadLetterPage>({
    path: "/api/jobs/admin/dlq",
    query,
    topics: ["dead-letters"],
    isList: true,
  });

export const deadLetterStatistics = (query: Query = {}) =>
  read<answers.DeadLetterStatistics>({
    path: "/api/jobs/admin/dlq/statistics",
    query,
    topics: ["dead-letters"],
  });

/** All of them: a service has some dozens of queues. */
export const queues = () =>
  queryOptions({
    queryKey: ["/api/queues"],
    queryFn: async ({ signal }) => {
      const all: answers.Queue[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await get<answers.QueuePage>("/api/queues", { limit: 200, cursor }, signal);
        all.push(...page.queues);
        if (page.next_cursor === null) return all;
        cursor = page.next_cursor;
      }
    },
    staleTime: 5_000,
    meta: { topics: ["queues"] as const },
  });

export const queue = (id: string) =>
  read<answers.Queue>({ path: `/api/queues/${id}`, topics: ["queues"] });

export const queueStats = (id: number | string) =>
  read<answers.QueueStats>({
    path: `/api/queues/${id}/stats`,
    topics: ["counts"],
    staleMs: 3_000,
  });

export const triggers = (query: Query = {}) =>
  read<answers.TriggerPage>({
    path: "/api/triggers",
    query: { limit: 200, ...query },
    topics: ["triggers", "audit"],
    isList: true,
  });

export const trigger = (id: string) =>
  read<answers.Trigger>({ path: `/api/triggers/${id}`, topics: ["triggers", "audit"] });

export const breakers = () =>
  read<{ readonly breakers: readonly Breaker[] }>({ path: "/api/breakers", topics: ["breakers"] });

export const tenants = (cursor?: string) =>
  read<{ readonly tenants: readonly Tenant[]; readonly next_cursor: string | null }>({
    path: "/api/tenants",
    query: { limit: 200, cursor },
    topics: ["tenants", "audit"],
  });

export const keys = () =>
  read<{ readonly keys: readonly answers.ApiKey[] }>({ path: "/api/keys", topics: ["audit"] });

export const audit = (query: Query) =>
  infiniteQueryOptions({
    queryKey: ["/api/audit", query],
    queryFn: ({ pageParam, signal }) =>
      get<answers.AuditPage>("/api/audit", { ...query, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    meta: { topics: ["audit"] as const },
  });

/** It answers 503 with the same body when something is in the way. */
export const readiness = () =>
  queryOptions({
    queryKey: ["/readyz"],
    queryFn: async ({ signal }) =>
      (await (await fetch("/readyz", { signal })).json()) as answers.Readiness,
    meta: { topics: ["workers"] as const },
  });
