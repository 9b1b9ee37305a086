// Every list, search and figure of the service on a large database. MILLRACE_JOBS says how large (a million
// unless told); with MILLRACE_LOAD_URL a database that scripts/generate-jobs.mjs has filled is used instead.

import { afterAll, beforeAll, expect, test } from "vitest";
import { generateJobs } from "../../scripts/generate-jobs.mjs";
import { HttpServer } from "../../src/http/server.ts";
import { Millrace } from "../../src/index.ts";
import { adminKey, send } from "../support/http.ts";
import { createDatabase } from "../support/postgres.ts";

const jobs = Number(process.env.MILLRACE_JOBS ?? 1_000_000);
const filled = process.env.MILLRACE_LOAD_URL;
const rounds = 15;

let millrace: Millrace;
let server: HttpServer;
let drop = async () => {};

beforeAll(async () => {
  const database = filled === undefined ? await createDatabase() : { url: filled, drop };
  drop = database.drop;
  millrace = await Millrace.connect({ databaseUrl: database.url, logLevel: "silent" });
  if (filled === undefined) await generateJobs({ url: database.url, jobs });
  server = new HttpServer({ millrace, port: 0, adminKey });
  await server.start();
}, 3_600_000);

afterAll(async () => {
  await server.stop();
  await millrace.stop();
  await drop();
});

interface Timing {
  readonly route: string;
  readonly best: number;
  readonly p50: number;
  readonly worst: number;
}

async function time(route: string, path: string, key = adminKey): Promise<Timing> {
  const took: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const began = performance.now();
    const { status } = await send(server.url, "GET", path, { key });
    took.push(performance.now() - began);
    expect(status, path).toBe(200);
  }
  const sorted = took.toSorted((a, b) => a - b);
  const round = (ms = 0) => Math.round(ms * 10) / 10;
  return {
    route,
    best: round(sorted[0]),
    p50: round(sorted[rounds >> 1]),
    worst: round(sorted.at(-1)),
  };
}

test("answers every list, search and figure, and prints how long it takes", async () => {
  const keyOf = async (tenant_id: string): Promise<string> => {
    const body = { name: "staff", role: "manager", tenant_id };
    return (await send(server.url, "POST", "/api/keys", { body })).body.key;
  };
  const key = await keyOf("tenant-7");
  const { queues } = (await send(server.url, "GET", "/api/queues?limit=200")).body;
  const busiest = queues.find(({ name }: { name: string }) => name === "load-0").id;
  const [own] = (await send(server.url, "GET", "/api/jobs?tenant_id=tenant-7&state=ready")).body
    .jobs;
  const [dead] = (await send(server.url, "GET", "/api/jobs/admin/dlq?limit=1")).body.dlq_items;
  const day = 86_400_000;
  const ago = (n: number) => new Date(Date.now() - n * day).toISOString();
  const cursor = async (path: string) =>
    `${path}&cursor=${(await send(server.url, "GET", path)).body.next_cursor}`;
  const list = "/api/jobs?limit=50";
  const dlq = "/api/jobs/admin/dlq?limit=50";
  const asked: [string, string, string?][] = [
    ["queue stats", `/api/queues/${busiest}/stats`],
    ["jobs, newest", list],
    ["jobs, next page", await cursor(list)],
    ["jobs of a tenant", `${list}&tenant_id=tenant-150`],
    ["jobs of a queue", `${list}&queue=load-3`],
    ["jobs of a rare type", `${list}&type=type-49`],
    ["jobs by state", `${list}&state=dead`],
    ["jobs by time", `${list}&created_from=${ago(3)}&created_to=${ago(2)}`],
    ["jobs by reference", `${list}&reference=ref-1000`],
    ["jobs by correlation", `${list}&correlation_id=corr-1000`],
    ["jobs by key", `${list}&idempotency_key=key-1002`],
    ["jobs by label", `${list}&label=customer:1003`],
    ["job by id", `/api/jobs/${own.id}`],
    ["explain", `/api/jobs/${own.id}/explain`],
    ["dead letters", dlq],
    ["dead letters, next page", await cursor(dlq)],
    ["dead letters of a tenant", `${dlq}&tenant_id=tenant-150`],
    ["dead letters by error", `${dlq}&error_fingerprint=${dead.error_fingerprint}`],
    ["dead letter statistics", "/api/jobs/admin/dlq/statistics"],
    ["admin statistics", "/api/jobs/admin/queue/statistics"],
    ["queues", "/api/queues?limit=50"],
    ["tenants", "/api/tenants?limit=50"],
    ["audit", "/api/audit?limit=50"],
    ["as a tenant: jobs", list, key],
    ["as a tenant: by queue", `${list}&queue=load-3`, key],
    ["as a tenant: by label", `${list}&label=customer:1003`, key],
    ["as a tenant: by reference", `${list}&reference=ref-1000`, key],
    ["as a tenant: job by id", `/api/jobs/${own.id}`, key],
    ["as a tenant: dead letters", dlq, key],
    ["as a tenant: statistics", "/api/jobs/admin/dlq/statistics", key],
    ["as a tenant: share of a queue", `/api/queues/${busiest}/stats`, key],
    ["the share of the largest", `/api/queues/${busiest}/stats`, await keyOf("tenant-0")],
    ["the share of default", `/api/queues/${busiest}/stats`, await keyOf("default")],
  ];
  const timings: Timing[] = [];
  for (const [route, path, who] of asked) timings.push(await time(route, path, who));
  expect(timings.filter(({ p50 }) => p50 > 0)).toHaveLength(asked.length);
  console.table(timings);
});
