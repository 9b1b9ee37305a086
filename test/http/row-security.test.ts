// Tenants are kept apart twice: by the service, and by row-level security under it. Here is the second.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { Millrace } from "../../src/index.ts";
import { adminKey, send, useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue } from "../support/instance.ts";
import { rowSecurityPlansSuite } from "./row-security-plans.ts";

const http = useHttp();

/** As the role of tenants, in a transaction that comes to nothing. */
async function asTenant<T>(
  tenant: string | null,
  act: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: http.url });
  await client.connect();
  try {
    await client.query("begin");
    if (tenant !== null)
      await client.query("select set_config('millrace.tenant', $1, true)", [tenant]);
    await client.query("set local role millrace_tenant");
    return await act(client);
  } finally {
    await client.end();
  }
}

const ofJobs = [
  "job",
  "scheduled_job",
  "dead_job",
  "history",
  "job_label",
  "long_payload",
  "audit",
];
const settings = ["trigger", "webhook", "api_key"];
const ofTenant = [...ofJobs, ...settings];
const others = ["unique_name", "claim", "lease", "queue"];

/** Every kind of row, of one tenant. */
async function fill(tenant: string) {
  const made = { name: newQueue(), tenant_id: tenant };
  const queue = (await http.call("POST", "/api/queues", { body: made })).body;
  const key = await http.key("robot", tenant);
  const post = async (more: object = {}) => {
    const named = { idempotency_key: randomUUID(), labels: ["n"], payload: { n: "1" } };
    const body = { type: "t", queue: made.name, tenant_id: tenant, ...named, ...more };
    return (await http.call("POST", "/api/jobs", { body })).body.id as string;
  };
  const dead = await dieOnce(http, key, queue.id);
  const cancelled = await post();
  await http.call("POST", `/api/jobs/${cancelled}/cancel`);
  const held = await post();
  const long = { note: "leave it beside the door ".repeat(30) };
  await post({ payload: long, labels: undefined, idempotency_key: undefined, delay_ms: undefined });
  await http.call("GET", `/api/queue-items/next?queue_id=${queue.id}`, { key });
  const own = { tenant_id: tenant, name: made.name };
  const cron = { type: "TIME", cron: "0 0 1 1 *", job_type: "t" };
  const trigger = (await http.call("POST", "/api/triggers", { body: { ...own, ...cron } })).body.id;
  const hook = { ...own, url: `https://${made.name}.example.com/` };
  const webhook = (await http.call("POST", "/api/webhooks", { body: hook })).body.id;
  const keys = (await http.call("GET", "/api/keys")).body.keys;
  const keyId = keys.find((one: { tenant_id: string }) => one.tenant_id === tenant).id as string;
  return {
    queue,
    key,
    trigger,
    webhook,
    keyId,
    ids: [dead, cancelled, held, await post(), await post({ delay_ms: 9e6 })],
  };
}

let acme: Awaited<ReturnType<typeof fill>>;
let globex: Awaited<ReturnType<typeof fill>>;
beforeAll(async () => {
  acme = await fill("acme");
  globex = await fill("globex");
});

describe("security 4: the role of tenants", () => {
  test("sees nothing when no tenant is named, whatever it asks for", async () => {
    for (const tenant of [null, ""])
      for (const table of [...ofTenant, ...others, "trigger_batch"]) {
        const column = ["claim", "lease", "queue"].includes(table) ? "id" : "job_id";
        const isNamed = ofTenant.includes(table);
        const what = isNamed ? "tenant" : table === "unique_name" ? "key" : column;
        const { rows } = await asTenant(tenant, (client) =>
          client.query(`select ${what} from millrace.${table}`),
        );
        expect(rows, table).toEqual([]);
      }
  });

  test("sees one tenant's rows and the shared queues, without any condition of ours", async () => {
    await asTenant("acme", async (client) => {
      for (const table of ofTenant) {
        const { rows } = await client.query(`select distinct tenant from millrace.${table}`);
        expect(rows, table).toEqual([{ tenant: "acme" }]);
      }
      const scopes = await client.query("select distinct scope from millrace.unique_name");
      expect(scopes.rows).toEqual([{ scope: "key:acme" }]);
      const claims = await client.query("select id, job_ids from millrace.claim");
      expect(claims.rows.map(({ job_ids }) => job_ids)).toEqual([[acme.ids[2]]]);
      const queues = await client.query("select id, tenant from millrace.queue");
      const ids = queues.rows.map(({ id }) => id);
      expect(ids).toContain(acme.queue.id);
      expect(ids).not.toContain(globex.queue.id);
    });
  });

  test("writes nothing, and reads nothing that no policy covers", async () => {
    const refused = async (sql: string) => {
      const { code } = await asTenant("acme", (client) =>
        client.query(sql).then(
          () => ({ code: "nothing" }),
          (error: { code: string }) => error,
        ),
      );
      expect(code, sql).toBe("42501");
    };
    for (const table of [...ofTenant, ...others]) await refused(`delete from millrace.${table}`);
    await refused("update millrace.job set tenant = 'acme'");
    const [partition] = await http.query<{ name: string }>(
      "select relname as name from pg_class where relname ~ '^history_\\d+_\\d+$' limit 1",
    );
    for (const table of ["tenant", "breaker", "session", "notification", partition?.name])
      await refused(`select from millrace.${table}`);
    await refused("select info from millrace.lease");
    for (const secret of ["secret_hash", "old_secret_hash"])
      await refused(`select ${secret} from millrace.api_key`);
    for (const secret of ["signing_key", "old_signing_key"])
      await refused(`select ${secret} from millrace.webhook`);
  });
});

describe("security 4: what a tenant's call reads", () => {
  test("is that tenant's, even where the store is asked for another's by mistake", async () => {
    const { service } = http.millrace.store;
    expect(await service.isSecured()).toBe(true);
    const reads = service.readsOf("acme");
    expect(await reads.find(globex.ids)).toEqual([]);
    expect((await reads.find(acme.ids)).map(({ id }) => id).sort()).toEqual([...acme.ids].sort());
    for (const id of globex.ids) expect(await reads.item(id)).toBe(null);
    for (const filter of [{}, { tenant: "globex" }, { id: globex.ids[3] }]) {
      const { jobs } = await reads.search.jobs(filter, null, 100);
      expect(jobs.filter(({ tenant }) => tenant !== "acme")).toEqual([]);
    }
    const label = { name: "n", value: "1" };
    expect((await reads.search.jobs({ tenant: "globex", label }, null, 9)).jobs).toEqual([]);
    expect((await reads.search.jobs({ tenant: "acme", label }, null, 9)).jobs).toHaveLength(4);
    expect((await reads.deadLetters.list({ tenant: "globex" }, null, 9)).letters).toEqual([]);
    expect(await reads.deadLetters.count({})).toBe(1);
    expect((await reads.deadLetters.statistics(undefined)).byStatus).toEqual({ pending_review: 1 });
    expect(await reads.queues.find(globex.queue.id)).toBe(null);
    expect((await reads.queues.list(null)).some(({ tenant }) => tenant === "globex")).toBe(false);
    expect(await reads.triggers.find(globex.trigger)).toBe(null);
    expect(await reads.triggers.find(acme.trigger)).toMatchObject({ tenant: "acme" });
    expect((await reads.triggers.list({}, 9)).map(({ id }) => id)).toEqual([acme.trigger]);
    expect(await reads.triggers.list({ tenant: "globex" }, 9)).toEqual([]);
    expect((await reads.webhooks.list()).map(({ id }) => id)).toEqual([acme.webhook]);
    expect(await reads.keys.find(globex.keyId)).toBe(null);
    expect(await reads.keys.find(acme.keyId)).toMatchObject({ tenant: "acme" });
    expect((await reads.keys.list(null)).every(({ tenant }) => tenant === "acme")).toBe(true);
    expect(await reads.keys.list("globex")).toEqual([]);
    const entries = await reads.audit.list({}, null, 1_000);
    expect(new Set(entries.map(({ tenant }) => tenant))).toEqual(new Set(["acme"]));
    // Of whoever sees all, nothing is kept back.
    const all = service.readsOf(null);
    expect(await all.find([...acme.ids, ...globex.ids])).toHaveLength(10);
    const hooks = (await all.webhooks.list()).map(({ id }) => id);
    expect(hooks).toEqual(expect.arrayContaining([acme.webhook, globex.webhook]));
    expect(await all.triggers.list({}, 9)).toHaveLength(2);
    expect(await all.keys.find(globex.keyId)).not.toBe(null);
    const held = await reads.item(acme.ids[2] ?? "");
    expect(held).toMatchObject({ robot: "robot of acme", lockExpiresAt: expect.any(Date) });
  });

  test("goes through the role: where that may not read, the tenant's key reads nothing", async () => {
    const key = await http.key("admin", "acme");
    const shared = (await http.call("POST", "/api/queues", { body: { name: newQueue() } })).body;
    const paths = {
      job: `/api/queues/${shared.id}/stats`,
      trigger: `/api/triggers/${acme.trigger}`,
      webhook: "/api/webhooks",
      api_key: `/api/keys/${acme.keyId}`,
    };
    for (const [table, path] of Object.entries(paths)) {
      const columns = table === "api_key" || table === "webhook" ? "(id, tenant, name)" : "";
      const status = async (who?: string) =>
        (await http.call("GET", path, who === undefined ? {} : { key: who })).status;
      expect(await status(key), table).toBe(200);
      await http.query(`revoke select ${columns} on millrace.${table} from millrace_tenant`);
      try {
        expect(await status(key), table).toBeGreaterThanOrEqual(500);
        expect(await status(), table).toBe(200);
      } finally {
        await http.query(`grant select ${columns} on millrace.${table} to millrace_tenant`);
      }
      expect(await status(key), table).toBe(200);
    }
  });

  test("leaves neither tenant nor role behind on a pooled connection", async () => {
    const one = await http.connect({ poolSize: 1 });
    const reads = one.store.service.readsOf("acme");
    const seen = async () => (await one.store.find(globex.ids)).length;
    expect(await reads.find(globex.ids)).toEqual([]);
    expect(await seen()).toBe(5);
    await expect(reads.find(["not a uuid"])).rejects.toThrow(/uuid/);
    expect(await seen()).toBe(5);
    expect(await one.store.service.readsOf("globex").find(globex.ids)).toHaveLength(5);
    expect(await reads.find(globex.ids)).toEqual([]);
  });
});

describe("the plans under it", () => rowSecurityPlansSuite(http, () => acme.queue.id));

test("where the role may not be made everything works without it, and the cluster says so", async () => {
  const user = `plain_${randomUUID().slice(0, 8)}`;
  const database = new URL(http.url).pathname.slice(1);
  await http.query(`create role ${user} login password 'only-for-tests'`);
  await http.query(`grant create on database "${database}" to ${user}`);
  const url = new URL(http.url);
  url.username = user;
  url.password = "only-for-tests";
  const options = { databaseUrl: url.href, schema: user, logLevel: "silent" as const };
  const millrace = await Millrace.connect(options);
  const server = new HttpServer({ millrace, port: 0, adminKey });
  await server.start();
  try {
    const cluster = await send(server.url, "GET", "/api/cluster");
    expect(cluster.body.postgres.row_security).toBe("off");
    const made = { name: "own", role: "producer", tenant_id: "acme" };
    const { key } = (await send(server.url, "POST", "/api/keys", { body: made })).body;
    const body = { type: "t", payload: 1 };
    const job = (await send(server.url, "POST", "/api/jobs", { key, body })).body;
    const read = await send(server.url, "GET", `/api/jobs/${job.id}`, { key });
    expect(read.body).toMatchObject({ id: job.id, payload: 1, tenant_id: "acme" });
    const here = (await http.call("GET", "/api/cluster")).body;
    expect(here.postgres.row_security).toBe("on");
  } finally {
    await server.stop();
    await millrace.stop();
    await http.query(`drop owned by ${user} cascade`);
    await http.query(`drop role ${user}`);
  }
});
