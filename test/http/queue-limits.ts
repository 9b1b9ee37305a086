// Flow control set over HTTP: every setting, the bounds of each, and that it holds.

import { describe, expect, test } from "vitest";
import { HttpClient } from "../../src/client.ts";
import { defineJob } from "../../src/index.ts";
import { adminKey, type CallOptions, useHttp } from "../support/http.ts";
import { newQueue, refusal } from "../support/instance.ts";

/** Nothing flows back while a test runs. */
const slow = (limit: number) => ({ limit, window_ms: 86_400_000 });

/** Everything that configureQueue takes, as it is called there and here; never what a new queue has. */
const everything = [
  ["description", "mail", "description", "mail"],
  ["isActive", false, "is_active", false],
  ["maxAttempts", 4, "max_retries", 3],
  ["enforceUniqueReference", true, "enforce_unique_reference", true],
  ["capacity", 90, "capacity", 90],
  ["warnDepth", 80, "warn_depth", 80],
  ["retentionDays", 7, "retention_days", 7],
  ["deadRetentionDays", 8, "dead_retention_days", 8],
  ["timelineRetentionDays", 6, "timeline_retention_days", 6],
  ["keyTtlSeconds", 60, "key_ttl_seconds", 60],
  ["fair", false, "fair", false],
  ["ageingStepMs", 500, "ageing_step_ms", 500],
  ["concurrency", 3, "concurrency", 3],
  ["keyConcurrency", 2, "key_concurrency", 2],
  ["throttle", { limit: 9, windowMs: 1_000 }, "throttle", { limit: 9, window_ms: 1_000 }],
  ["keyThrottle", { limit: 8, windowMs: 2_000 }, "key_throttle", { limit: 8, window_ms: 2_000 }],
  ["deadLetterBlocksKey", true, "dead_letter_blocks_key", true],
  ["rateLimit", { limit: 7, windowMs: 3_000 }, "rate_limit", { limit: 7, window_ms: 3_000 }],
  ["tenantRateLimit", { limit: 6, windowMs: 10 }, "tenant_rate_limit", { limit: 6, window_ms: 10 }],
  ["tenantCapacity", 70, "tenant_capacity", 70],
] as const;
const inProcess = Object.fromEntries(everything.map(([name, value]) => [name, value]));
const overHttp = Object.fromEntries(everything.map(([, , field, value]) => [field, value]));

const rates = (name: string, field: string) => {
  const both = (limit: unknown, ms: unknown, more = {}) =>
    [name, { limit, windowMs: ms, ...more }, field, { limit, window_ms: ms, ...more }] as const;
  return [
    ...[both(1, 10), both(2_147_483_647, 86_400_000), both(0, 1_000), both(1, 9)],
    ...[both(1, 86_400_001), both(1.5, 1_000), both(1, "1000"), both(1, 10, { burst: 2 })],
    [name, { limit: 1 }, field, { limit: 1 }] as const,
    [name, 5, field, 5] as const,
    [name, null, field, null] as const,
  ];
};
const numbers = (name: string, field: string) =>
  [0, 1, -1, 1.5, 86_400_000, 86_400_001, 2_147_483_647, 2_147_483_648, "1", true, null].map(
    (value) => [name, value, field, value] as const,
  );
const flags = (name: string, field: string) =>
  [true, false, null, 0, "true"].map((value) => [name, value, field, value] as const);

const bounds = [
  ...rates("throttle", "throttle"),
  ...rates("keyThrottle", "key_throttle"),
  ...rates("rateLimit", "rate_limit"),
  ...rates("tenantRateLimit", "tenant_rate_limit"),
  ...numbers("concurrency", "concurrency"),
  ...numbers("keyConcurrency", "key_concurrency"),
  ...numbers("ageingStepMs", "ageing_step_ms"),
  ...numbers("tenantCapacity", "tenant_capacity"),
  ...numbers("capacity", "capacity"),
  ...flags("fair", "fair"),
  ...flags("deadLetterBlocksKey", "dead_letter_blocks_key"),
];

export function queueLimitsSuite(): void {
  const http = useHttp();
  const create = async (more: object = {}) => {
    const body = { name: newQueue(), tenant_id: "acme", ...more };
    const made = await http.call("POST", "/api/queues", { body });
    expect(made.status).toBe(201);
    return made.body;
  };
  /** A queue with these settings, and a robot at it. */
  async function scene(settings: object) {
    const { id, name } = await create(settings);
    const key = await http.key("robot", "acme");
    const call = (method: string, path: string, body?: unknown, more: CallOptions = {}) =>
      http.call(method, path, { key, body, ...more });
    return {
      name,
      add: (more: object = {}) => call("POST", "/api/queue-items", { queue_id: id, ...more }),
      next: async (count = 9): Promise<{ id: string; token: string }[]> =>
        (await call("POST", "/api/queue-items/next", { queue_id: id, count })).body?.items ?? [],
      settle: (item: { id: string; token: string } | undefined, status = "DONE") =>
        call("PUT", `/api/queue-items/${item?.id}`, { status, token: item?.token }),
      change: (body: object) => http.call("PUT", `/api/queues/${id}`, { body }),
    };
  }

  describe("every setting", () => {
    test("is given with the queue, read, changed and taken back, and is what TypeScript sees", async () => {
      const made = await create(overHttp);
      expect(made).toMatchObject(overHttp);
      const own = (await http.millrace.store.queues()).find(({ id }) => id === made.id);
      expect(own).toMatchObject(inProcess);
      const found = ["id", "tenant", "name", "paused", "controlled", "firstTenant", "laned"];
      expect(Object.keys(own ?? {}).sort()).toEqual([...Object.keys(inProcess), ...found].sort());
      const plain = await create();
      const back = Object.fromEntries(Object.keys(overHttp).map((field) => [field, plain[field]]));
      expect(Object.entries(back).filter(([field, value]) => overHttp[field] === value)).toEqual(
        [],
      );
      const changed = await http.call("PUT", `/api/queues/${made.id}`, { body: back });
      expect(changed.body).toMatchObject(back);
      const again = await http.call("PUT", `/api/queues/${made.id}`, { body: overHttp });
      expect(again.body).toMatchObject(overHttp);
      expect((await http.call("GET", `/api/queues/${made.id}`)).body).toEqual(again.body);
      const target = `/api/audit?action=queue_update&target=${made.id}`;
      const { entries } = (await http.call("GET", target)).body;
      expect(entries[0].details.changed.sort()).toEqual(Object.keys(overHttp).sort());
    });

    test("has the same bounds over HTTP as in TypeScript, where the client says so itself", async () => {
      const { id } = await create();
      const name = newQueue();
      await http.millrace.configureQueue(name, {});
      const client = new HttpClient({ url: http.baseUrl, key: adminKey });
      const differing: unknown[] = [];
      let accepted = 0;
      for (const [setting, value, field, written] of bounds) {
        const call = (target: Pick<HttpClient, "configureQueue">) =>
          target.configureQueue(name, { [setting]: value }).then(
            () => "accepted",
            (error) => error.code,
          );
        const here = await call(http.millrace as unknown as HttpClient);
        const { status, body } = await http.call("PUT", `/api/queues/${id}`, {
          body: { [field]: written },
        });
        const there = status === 200 ? "accepted" : `${status} ${body.code}`;
        const wanted = here === "accepted" ? here : "400 REQUEST_INVALID";
        if (there !== wanted || (await call(client)) !== here) differing.push([field, written]);
        if (here === "accepted") accepted++;
      }
      expect(differing).toEqual([]);
      expect([accepted > 20, accepted < bounds.length - 20]).toEqual([true, true]);
    });

    test("is set and read by the client over HTTP", async () => {
      const client = new HttpClient({ url: http.baseUrl, key: adminKey, tenant: "acme" });
      const name = newQueue();
      expect(await client.configureQueue(name, inProcess)).toMatchObject({
        ...{ name, tenant: "acme", paused: false },
        ...inProcess,
      });
      const back = { maxAttempts: null, throttle: null, concurrency: null, fair: true };
      const changed = await client.configureQueue(name, back);
      expect(changed).toMatchObject({ ...inProcess, ...back });
      expect((await client.queues()).find((queue) => queue.name === name)).toEqual(changed);
      const wrong = await refusal(client.configureQueue(name, { speed: 1 } as object));
      expect(wrong.code).toBe("OPTION_INVALID");
    });

    test("is for managers, and that of a shared queue not for a tenant's", async () => {
      const { id } = await create();
      const shared = (await http.call("POST", "/api/queues", { body: { name: newQueue() } })).body;
      const put = async (queue: number, key: string) =>
        (await http.call("PUT", `/api/queues/${queue}`, { key, body: { concurrency: 1 } })).status;
      expect(await put(id, await http.key("staff", "acme"))).toBe(403);
      expect(await put(id, await http.key("manager", "other"))).toBe(404);
      expect(await put(shared.id, await http.key("manager", "acme"))).toBe(403);
      expect(await put(id, await http.key("manager", "acme"))).toBe(200);
    });
  });

  describe("what is set over HTTP", () => {
    test("limits how many are out at once, from the next call on and until it is taken back", async () => {
      const { add, next, settle, change } = await scene({});
      for (let n = 0; n < 5; n++) await add();
      await change({ concurrency: 2 });
      const [first, second, ...others] = await next();
      expect([first === undefined, second === undefined, others]).toEqual([false, false, []]);
      expect(await next()).toEqual([]);
      expect((await settle(first)).status).toBe(200);
      expect(await next()).toHaveLength(1);
      await change({ concurrency: null });
      expect(await next()).toHaveLength(2);
    });

    test("limits starts in a window, and those of each key", async () => {
      const throttled = await scene({ throttle: slow(2) });
      for (let n = 0; n < 4; n++) await throttled.add();
      expect(await throttled.next()).toHaveLength(2);
      expect(await throttled.next()).toEqual([]);
      const byKey = await scene({ key_throttle: slow(1) });
      for (const limit_key of ["a", "a", "b"]) await byKey.add({ limit_key });
      for (const item of await byKey.next()) await byKey.settle(item);
      expect(await byKey.next()).toEqual([]);
    });

    test("limits how many of a key are out at once", async () => {
      const { add, next, name } = await scene({ key_concurrency: 1 });
      for (const limit_key of ["a", "a", "b"]) expect((await add({ limit_key })).status).toBe(201);
      expect(await next()).toHaveLength(2);
      const both = { limit_key: "a", ordering_key: "b" };
      expect((await add(both)).body.code).toBe("REQUEST_INVALID");
      const job = { type: "keyed", queue: name, ...both };
      const refused = await http.call("POST", "/api/jobs", { body: { tenant_id: "acme", ...job } });
      expect(refused.body.code).toBe("REQUEST_INVALID");
    });

    test("lets a dead letter hold up its ordering key", async () => {
      const { add, next, settle } = await scene({ dead_letter_blocks_key: true });
      for (let n = 0; n < 2; n++) await add({ ordering_key: "a" });
      const [first, ...others] = await next();
      expect(others).toEqual([]);
      expect((await settle(first, "FAILED")).body.status).toBe("FAILED");
      expect(await next()).toEqual([]);
      const body = { notes: "seen" };
      await http.call("POST", `/api/jobs/admin/dlq/${first?.id}/discard`, { body });
      expect(await next()).toHaveLength(1);
    });

    test("lets what has waited long go before what is urgent", async () => {
      const { add, next } = await scene({ ageing_step_ms: 1_000 });
      const old = (await add()).body.id;
      await add({ priority: 5 });
      const sql = "update millrace.job set ready_at = ready_at - interval '1 hour' where id = $1";
      await http.query(sql, [old]);
      expect((await next(1)).map(({ id }) => id)).toEqual([old]);
    });

    test("holds producers to a rate, in all and each tenant", async () => {
      const all = await scene({ rate_limit: slow(2) });
      const each = await create({ tenant_id: undefined, tenant_rate_limit: slow(1) });
      const status = async (call: Promise<{ status: number }>) => (await call).status;
      expect([await status(all.add()), await status(all.add())]).toEqual([201, 201]);
      const refused = await all.add();
      expect([refused.status, refused.body.code]).toEqual([429, "RATE_LIMITED"]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      const enqueue = (tenant_id: string) =>
        status(
          http.call("POST", "/api/jobs", { body: { type: "rated", queue: each.name, tenant_id } }),
        );
      const answers = [];
      for (const tenant of ["one", "one", "two", "two"]) answers.push(await enqueue(tenant));
      expect(answers).toEqual([201, 429, 201, 429]);
    });

    test("bounds what waits of each tenant", async () => {
      const { name } = await create({ tenant_id: undefined, tenant_capacity: 1 });
      const codes = [];
      for (const tenant_id of ["one", "one", "two"]) {
        const body = { type: "bounded", queue: name, tenant_id };
        codes.push((await http.call("POST", "/api/jobs", { body })).body.code);
      }
      expect(codes).toEqual([undefined, "TENANT_FULL", undefined]);
    });
  });

  test("jobs that the client enqueues have the keys that their definition finds", async () => {
    const { name, next } = await scene({ key_concurrency: 1 });
    const client = new HttpClient({ url: http.baseUrl, key: adminKey, tenant: "acme" });
    const ordered = defineJob({
      ...{ type: "ordered", queue: name },
      orderingKey: (payload: unknown) => String(payload),
    });
    const limited = defineJob({ type: "limited", queue: name });
    for (const account of ["a", "a", "b"]) await client.enqueue(ordered, account);
    for (let n = 0; n < 2; n++) await client.enqueue(limited, {}, { limitKey: "c" });
    expect(await next()).toHaveLength(3);
  });
}
