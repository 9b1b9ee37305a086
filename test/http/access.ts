// Who may do what: the matrix of routes, roles and tenants, made from the OpenAPI document itself.

import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../src/http/contract/contract.ts";
import { routes } from "../../src/http/routes/routes.ts";
import { type Role, roles } from "../../src/store/api-key.ts";
import { useHttp } from "../support/http.ts";
import { acmeWorld, type World } from "../support/http-world.ts";

export function accessSuite(): void {
  const http = useHttp();

  /** Which roles a role of the document stands for; not the service's own table, which is what is tried. */
  const meant: Record<Role, readonly Role[]> = {
    producer: ["producer"],
    robot: ["robot"],
    staff: ["staff", "manager", "admin"],
    manager: ["manager", "admin"],
    admin: ["admin"],
  };
  const mayCall = (role: Role, access: readonly Role[]) =>
    access.some((one) => meant[one].includes(role));

  interface Operation {
    readonly method: string;
    readonly path: string;
    readonly id: string;
    readonly access: readonly Role[] | "public";
  }

  async function operations(): Promise<Operation[]> {
    const { body } = await http.call("GET", "/api/openapi.json", { key: null });
    return Object.entries(body.paths).flatMap(([path, methods]) =>
      Object.entries(methods as Record<string, { operationId: string; "x-access": Role[] }>).map(
        ([method, operation]) => ({
          ...{ method: method.toUpperCase(), path, id: operation.operationId },
          access: operation["x-access"],
        }),
      ),
    );
  }

  /** A call that reaches the handler and finds nothing there to harm. */
  const harmless = ({ id, path }: Operation) =>
    (id === "readEvents" ? `${path}?kinds=nonsense` : path)
      .replace(/\/api\/queues\/\{id\}/, "/api/queues/2000000000")
      .replace(/\{(id|name)\}/, randomUUID());

  describe("security 1: every route", () => {
    test("is in the document, is served, and says who may call it", async () => {
      const documented = (await operations()).map(({ id }) => id).sort();
      expect(contract.map(({ id }) => id).sort()).toEqual(documented);
      expect(routes.map(({ route }) => route.id).sort()).toEqual(documented);
      expect(new Set(documented).size).toBe(documented.length);
      for (const { id, access } of contract)
        expect(access === "public" || access.length > 0, id).toBe(true);
    });

    test("is open to no more roles than these", async () => {
      const all = await operations();
      const of = (role: Role) =>
        all
          .filter(({ access }) => access !== "public" && mayCall(role, access))
          .map(({ id }) => id)
          .sort();
      const items = ["addItem", "addItemByName", "readItem"];
      const queues = ["listQueues", "readQueue"];
      const own = ["readSession", "deleteSession"];
      expect(of("producer")).toEqual(
        [
          ...items,
          ...queues,
          ...own,
          "enqueueJob",
          "listJobs",
          "readJob",
          "explainJob",
          "cancelJob",
        ].sort(),
      );
      const leases = ["nextItem", "takeNextItem", "settleItem", "renewItem"];
      expect(of("robot")).toEqual([...items, ...queues, ...own, ...leases].sort());
      const staff = all.filter(({ id }) => of("staff").includes(id));
      const reads = staff.filter(({ id }) => id !== "deleteSession");
      expect(reads.every(({ method }) => method === "GET")).toBe(true);
      const adminOnly = of("admin").filter((id) => !of("manager").includes(id));
      const keys = ["createKey", "listKeys", "readKey", "revokeKey", "rotateKey"];
      const tenants = ["listTenants", "readTenant", "updateTenant", "eraseTenant"];
      const pauses = ["pauseTenant", "resumeTenant"];
      expect(adminOnly).toEqual([...keys, ...tenants, ...pauses, "verifyAudit"].sort());
      for (const { id, path } of all)
        if (path.startsWith("/api/jobs/admin")) expect(of("staff"), id).not.toContain(id);
      const open = all.filter(({ access }) => access === "public").map(({ path }) => path);
      expect(open.sort()).toEqual(["/api/openapi.json", "/api/session", "/healthz", "/readyz"]);
    });

    test("refuses whoever has no key, or a wrong one", async () => {
      for (const operation of await operations()) {
        const wrong = `mrk_${"0".repeat(32)}_${"0".repeat(64)}`;
        for (const key of [null, wrong, "", "x".repeat(600)]) {
          if (operation.access === "public") continue;
          const headers = { "x-forwarded-for": randomUUID() };
          const answer = await http.call(operation.method, harmless(operation), { key, headers });
          expect([401, 429], `${operation.id} ${key}`).toContain(answer.status);
        }
      }
    });

    test.each(roles.flatMap((role) => [[role, undefined] as const, [role, "acme"] as const]))(
      "lets the role %s of tenant %s do what the document says, and nothing else",
      async (role, tenant) => {
        const key = await http.key(role, tenant);
        for (const operation of await operations()) {
          const { method, access, id } = operation;
          const answer = await http.call(method, harmless(operation), { key });
          const isRefused = answer.status === 403 && answer.body.code === "FORBIDDEN";
          expect(answer.status, id).toBeLessThan(500);
          expect(isRefused, `${role} ${id}`).toBe(access !== "public" && !mayCall(role, access));
        }
      },
    );
  });

  describe("security 1: a session", () => {
    test.each(roles.flatMap((role) => [[role, undefined] as const, [role, "acme"] as const]))(
      "of the role %s of tenant %s may do what its key may, but not lease with a GET",
      async (role, tenant) => {
        const key = await http.key(role, tenant);
        const browser = await http.signIn(key);
        for (const operation of await operations()) {
          const { method, access, id } = operation;
          if (id === "deleteSession") continue;
          const answer = await http.call(method, harmless(operation), browser);
          const isAllowed = access === "public" || mayCall(role, access);
          const code = answer.status >= 400 ? answer.body.code : undefined;
          if (id === "nextItem") expect(code, role).toBe("UNAUTHENTICATED");
          else expect(code === "FORBIDDEN", `${role} ${id}`).toBe(!isAllowed);
          expect(code === "UNAUTHENTICATED", `${role} ${id}`).toBe(id === "nextItem");
          expect(answer.status, id).toBeLessThan(500);
        }
      },
    );
  });

  describe("security 2: another tenant", () => {
    let world: World;
    beforeAll(async () => {
      world = await acmeWorld(http);
    });

    test("finds nothing behind any id of acme's, whatever its role", async () => {
      for (const operation of await operations()) {
        if (!operation.path.includes("{id}")) continue;
        const target = world.targets[operation.id];
        if (target === undefined) throw new Error(`no target of acme's for ${operation.id}`);
        for (const role of roles) {
          if (operation.access === "public" || !mayCall(role, operation.access)) continue;
          const key = await http.key(role, "globex");
          const path = operation.path.replace("{id}", target.id) + (target.query ?? "");
          const body = target.body === undefined ? {} : { body: target.body };
          const answer = await http.call(operation.method, path, { key, ...body });
          expect(answer.status, `${role} ${operation.id}`).toBe(404);
          expect(JSON.stringify(answer.body)).not.toMatch(/acme/i);
        }
      }
      // The same calls reach acme's own people.
      await world.stillThere();
    });

    test("finds no more with a session than with a key", async () => {
      const browser = await http.signIn(await http.key("admin", "globex"));
      for (const { id, method, path, access } of await operations()) {
        const target = world.targets[id];
        if (target === undefined || access === "public" || !mayCall("admin", access)) continue;
        const body = target.body === undefined ? {} : { body: target.body };
        const full = path.replace("{id}", target.id) + (target.query ?? "");
        const answer = await http.call(method, full, { ...browser, ...body });
        expect(answer.status, id).toBe(404);
        expect(JSON.stringify(answer.body)).not.toMatch(/acme/i);
      }
      await world.stillThere();
    });

    test("sees nothing of acme's in lists, counts and statistics", async () => {
      for (const operation of await operations()) {
        if (operation.method !== "GET" || operation.path.includes("{")) continue;
        // Of events: test/http/events.ts.
        if (operation.access === "public" || ["nextItem", "readEvents"].includes(operation.id))
          continue;
        for (const role of roles) {
          if (!mayCall(role, operation.access)) continue;
          const key = await http.key(role, "globex");
          const answer = await http.call("GET", operation.path, { key });
          expect(JSON.stringify(answer.body), operation.id).not.toMatch(world.marks);
        }
      }
      const key = await http.key("manager", "globex");
      const letters = await http.call("GET", "/api/jobs/admin/dlq", { key });
      expect(letters.body).toEqual({ dlq_items: [], total_count: 0, next_cursor: null });
      const { body } = await http.call("GET", "/api/jobs/admin/dlq/statistics", { key });
      expect(body).toMatchObject({
        by_status: {},
        by_queue: {},
        top_fingerprints: [],
        last_day: 0,
      });
      const statistics = await http.call("GET", "/api/jobs/admin/queue/statistics", { key });
      expect(statistics.body).toMatchObject({ totals: { enqueued: 0 }, queues: [] });
    });

    test("may not be named: 403, wherever a tenant can be named", async () => {
      for (const role of ["producer", "robot", "manager", "admin"] as const) {
        const key = await http.key(role, "globex");
        const named = [
          ["POST", "/api/jobs", { type: "t", tenant_id: "acme" }],
          ["POST", "/api/jobs", { jobs: [{ type: "t" }, { type: "t", tenant_id: "acme" }] }],
          ["GET", "/api/jobs?tenant_id=acme"],
          ["GET", "/api/queues?tenant_id=acme"],
          ["POST", "/api/queues", { name: "q", tenant_id: "acme" }],
          ["POST", "/api/queue-items/add", { queue_name: world.queueName, tenant_id: "acme" }],
          ["GET", `/api/queue-items/next?queue_name=${world.queueName}&tenant_id=acme`],
          ["GET", "/api/jobs/admin/dlq?tenant_id=acme"],
          ["GET", "/api/audit?tenant_id=acme"],
          ["POST", "/api/keys", { name: "k", role: "robot", tenant_id: "acme" }],
        ] as const;
        for (const [method, path, body] of named) {
          const answer = await http.call(method, path, { key, body });
          expect(answer.status, `${role} ${method} ${path}`).toBe(403);
        }
      }
    });

    test("gets no item of a shared queue, and may not touch the queue itself", async () => {
      const name = `shared-${randomUUID()}`;
      const queue = (await http.call("POST", "/api/queues", { body: { name } })).body;
      const acme = await http.key("robot", "acme");
      const globex = await http.key("robot", "globex");
      const add = { queue_name: name, payload: "acme's" };
      expect(
        (await http.call("POST", "/api/queue-items/add", { key: acme, body: add })).status,
      ).toBe(201);
      const next = `/api/queue-items/next?queue_id=${queue.id}`;
      expect((await http.call("GET", next, { key: globex })).status).toBe(204);
      const manager = await http.key("manager", "globex");
      const path = `/api/queues/${queue.id}`;
      for (const [method, end, body] of [
        ["PUT", "", { is_active: false }],
        ["DELETE", "?confirm_count=1", undefined],
        ["POST", "/pause", undefined],
        ["POST", "/resume", undefined],
        ["POST", "/purge", { notes: "mine now" }],
      ] as const) {
        const answer = await http.call(method, path + end, { key: manager, body });
        expect([answer.status, answer.body.code], end).toEqual([403, "TENANT_FORBIDDEN"]);
      }
      const { counts } = (await http.call("GET", `${path}/stats`, { key: manager })).body;
      expect(counts).toEqual({ NEW: 0, IN_PROGRESS: 0, DONE: 0, FAILED: 0 });
      expect((await http.call("GET", next, { key: acme })).body.payload).toBe("acme's");
    });
  });
}
