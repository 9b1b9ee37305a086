// Robots over HTTP on one queue: they lease, renew, die and finish, all at once, while others add. What
// each of them held, and when, is written down beside the service and compared afterwards.

import { randomUUID } from "node:crypto";
import { Agent, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { Millrace } from "../../src/index.ts";
import { CommandLine } from "./command-line.ts";
import { adminKey } from "./http.ts";
import { createDatabase } from "./postgres.ts";
import { randomOf } from "./random.ts";
import { until } from "./until.ts";

export interface RobotTrialOptions {
  readonly robots: number;
  readonly items: number;
  readonly leaseSeconds: number;
  readonly drainMs: number;
  /** How often, of all that are leased, a robot dies with it, and how often it stalls past its lease. */
  readonly mishaps: number;
}

interface Lease {
  readonly item: string;
  readonly token: string;
  readonly from: number;
  /** Until when it was certainly its holder's: settled, or what the server said. */
  to: number;
}

interface Told {
  readonly leases: Lease[];
  readonly done: Map<string, number>;
  deaths: number;
  renewals: number;
  stale: number;
}

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
  readonly body: any;
}

const agent = new Agent({ keepAlive: true, maxSockets: 500 });

/** As quick as Node can: what is tried here is the service, not the client. */
function send(url: string, method: string, path: string, { body }: { body?: unknown } = {}) {
  return new Promise<Answered>((resolve, reject) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${adminKey}`,
      ...(text === "" ? {} : { "content-type": "application/json" }),
      "content-length": Buffer.byteLength(text),
    };
    const call = request(url + path, { method, agent, headers }, (answer) => {
      let said = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk) => {
        said += chunk;
      });
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, body: said === "" ? null : JSON.parse(said) }),
      );
      answer.on("error", reject);
    });
    call.on("error", reject);
    call.end(text);
  });
}

/** The same with the service in a process of its own. */
export async function robotsFinishEverythingOverThere(options: RobotTrialOptions): Promise<void> {
  const database = await createDatabase();
  const env = { DATABASE_URL: database.url, MILLRACE_ADMIN_KEY: adminKey, PORT: "0" };
  const server = new CommandLine(["serve", "--manager", "--json"], env);
  try {
    await server.said('"ready"');
    await trial(JSON.parse(server.out.split("\n")[0] ?? "").url, options);
  } finally {
    await server.stop();
    await database.drop();
  }
}

export async function robotsFinishEverything(options: RobotTrialOptions): Promise<void> {
  const database = await createDatabase();
  const millrace = await Millrace.connect({
    databaseUrl: database.url,
    logLevel: "silent",
    reclaimMs: 200,
    // How long the reclaimer waits after an election; robots have leases of their own.
    leaseMs: 1_000,
    poolSize: 10,
  });
  const server = new HttpServer({ millrace, port: 0, adminKey });
  try {
    await millrace.manage();
    await server.start();
    await trial(server.url, options);
  } finally {
    await server.stop();
    await millrace.stop();
    await database.drop();
  }
}

async function trial(url: string, options: RobotTrialOptions): Promise<void> {
  const { robots, items, drainMs } = options;
  const queue = await makeQueue(url);
  const told: Told = { leases: [], done: new Map(), deaths: 0, renewals: 0, stale: 0 };
  const adding = addRacing(url, queue.id, items);
  const over = new AbortController();
  const working = Array.from({ length: robots }, (_, n) =>
    robot(url, queue.id, n, options, told, over.signal),
  );
  const added = await adding;
  const counts = async () =>
    (await send(url, "GET", `/api/queues/${queue.id}/stats`)).body.counts as Record<string, number>;
  await until(
    "every item has ended",
    async () => {
      const { NEW, IN_PROGRESS } = await counts();
      return NEW === 0 && IN_PROGRESS === 0;
    },
    drainMs,
  );
  over.abort();
  await Promise.all(working);
  // Each reference was taken by one of those who raced for it.
  expect(added.accepted).toBe(items);
  expect(added.refused).toBeGreaterThan(0);
  expect(overlaps(told.leases)).toEqual([]);
  // Three lapses make a dead letter; everything else was done, once.
  const { DONE = 0, FAILED = 0 } = await counts();
  expect(DONE + FAILED).toBe(items);
  expect(told.done.size).toBe(DONE);
  expect([...told.done.values()].every((times) => times === 1)).toBe(true);
  expect(FAILED).toBeLessThanOrEqual(items / 50);
  expect(new Set(told.leases.map(({ token }) => token)).size).toBe(told.leases.length);
  // A trial in which nobody died and nobody came late has tested nothing.
  expect(Math.min(told.deaths, told.renewals, told.stale)).toBeGreaterThan(0);
  const { deaths, renewals, stale, leases } = told;
  console.log(
    JSON.stringify({ robots, items, leases: leases.length, deaths, renewals, stale, dead: FAILED }),
  );
}

async function makeQueue(url: string): Promise<{ id: number }> {
  const body = { name: "robots", enforce_unique_reference: true };
  return (await send(url, "POST", "/api/queues", { body })).body;
}

/** A tenth of the items has references, each asked for twice at once; the others come in bulk. */
async function addRacing(url: string, queueId: number, items: number) {
  const told = { accepted: 0, refused: 0 };
  const add = async (n: number) => {
    const body = { queue_id: queueId, reference: `r${n}`, payload: { n }, priority: n % 3 };
    const { status, body: answer } = await send(url, "POST", "/api/queue-items", { body });
    if (status === 201) told.accepted++;
    else if (answer.code === "REFERENCE_TAKEN") told.refused++;
    else throw new Error(`adding was answered ${status} ${JSON.stringify(answer)}`);
  };
  const named = Math.ceil(items / 10);
  for (let from = 0; from < items - named; from += 500) {
    const count = Math.min(500, items - named - from);
    const jobs = Array.from({ length: count }, (_, i) => ({
      ...{ type: "item", queue: "robots", payload: { n: from + i } },
    }));
    const { status, body } = await send(url, "POST", "/api/jobs", { body: { jobs } });
    if (status !== 201) throw new Error(`bulk was answered ${status}`);
    told.accepted += body.jobs.length;
  }
  for (let from = 0; from < named; from += 50) {
    const batch = Array.from({ length: Math.min(50, named - from) }, (_, i) => from + i);
    await Promise.all(batch.flatMap((n) => [add(n), add(n)]));
  }
  return told;
}

async function robot(
  url: string,
  queueId: number,
  n: number,
  options: RobotTrialOptions,
  told: Told,
  over: AbortSignal,
): Promise<void> {
  const { leaseSeconds } = options;
  const random = randomOf(n, "robot");
  while (!over.aborted) {
    const count = random() < 0.3 ? 5 : undefined;
    const body = {
      ...{ queue_id: queueId, wait_seconds: 2, lease_seconds: leaseSeconds },
      ...{ robot_id: `robot-${n}`, ...(count === undefined ? {} : { count }) },
    };
    const answer = await send(url, "POST", "/api/queue-items/next", { body });
    const taken = answer.status === 204 ? [] : (answer.body.items ?? [answer.body]);
    const from = Date.now();
    for (const item of taken) {
      const to = Math.min(from, Date.parse(item.lock_expires_at));
      const lease: Lease = { item: item.id, token: item.token, from, to };
      told.leases.push(lease);
      await work(url, item, lease, options, told, random);
    }
  }
}

async function work(
  url: string,
  item: { id: string; token: string },
  lease: Lease,
  { leaseSeconds, mishaps }: RobotTrialOptions,
  told: Told,
  random: () => number,
): Promise<void> {
  const path = `/api/queue-items/${item.id}`;
  const { token } = item;
  const luck = random();
  // It dies: nothing is ever said about the item again.
  if (luck < mishaps) {
    told.deaths++;
    return;
  }
  // It stalls past its lease and comes back.
  if (luck < 2 * mishaps) await delay(leaseSeconds * 2_500);
  else if (luck < 0.15) {
    const renewed = await send(url, "POST", `${path}/renew`, {
      body: { token, lease_seconds: leaseSeconds },
    });
    if (renewed.status === 200) {
      told.renewals++;
      lease.to = Date.now();
    }
  }
  const body = { token, status: "DONE", result: { by: randomUUID() } };
  const settled = await send(url, "PUT", path, { body });
  if (settled.status === 200) {
    lease.to = Date.now();
    told.done.set(item.id, (told.done.get(item.id) ?? 0) + 1);
  } else if (settled.status === 409) told.stale++;
  else throw new Error(`settling was answered ${settled.status} ${JSON.stringify(settled.body)}`);
}

/** Leases of one item that were both certainly live at one moment. */
function overlaps(leases: readonly Lease[]): string[] {
  const byItem = new Map<string, Lease[]>();
  for (const lease of leases) byItem.set(lease.item, [...(byItem.get(lease.item) ?? []), lease]);
  const found: string[] = [];
  for (const [item, own] of byItem) {
    own.sort((a, b) => a.from - b.from);
    for (const [i, lease] of own.entries()) {
      const before = own[i - 1];
      if (before !== undefined && before.to > lease.from)
        found.push(
          `${item}: ${before.token} until ${before.to}, ${lease.token} from ${lease.from}`,
        );
    }
  }
  return found;
}
