// Who may watch, how many at a time, and until when.

import { describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { type EventWatcher, useWatchers } from "../support/event-watcher.ts";
import { adminKey, useHttp } from "../support/http.ts";
import { acmeWorld } from "../support/http-world.ts";
import { until } from "../support/until.ts";

export function eventStreamsSuite(): void {
  const http = useHttp({ eventStreams: 5, eventStreamsPerKey: 3 });
  const { watchers, watch, refusalOf, makeQueue, makeBreaker } = useWatchers(http);

  describe("figures", () => {
    test("come once a second for queues that changed, and first of all", async () => {
      const [busy, idle] = [await makeQueue(), await makeQueue()];
      const watcher = await watch({ kinds: "counts" });
      const named = (wanted: number) => (data: { data: { queues: { id: number }[] } }) =>
        data.data.queues.some(({ id }) => id === wanted);
      await watcher.waitFor("counts", named(idle.id));
      const [all] = watcher.heard.filter(({ event }) => event === "counts");
      expect(all?.id).toBe(undefined);
      await http.call("POST", "/api/jobs", { body: { type: "t", queue: busy.name } });
      const found = await watcher.waitFor("counts", ({ data }) =>
        data.queues.some((q: { id: number; depth: number }) => q.id === busy.id && q.depth === 1),
      );
      expect(named(idle.id)(found.data)).toBe(false);
      expect(new Set(watcher.kinds())).toEqual(new Set(["open", "counts"]));
    });
  });

  describe("a stream", () => {
    test("security 2: tells a tenant nothing of another, neither events nor figures", async () => {
      const admin = await watch();
      const globex = await watch({ key: await http.key("admin", "globex") });
      const acme = await watch({ key: await http.key("staff", "acme") });
      const { marks, queueName } = await acmeWorld(http);
      await makeBreaker("shared");
      await http.millrace.tenants.pause("globex");
      await globex.waitFor("tenant.paused");
      await acme.waitFor("counts", ({ data }) =>
        data.queues.some((q: { name: string }) => q.name === queueName),
      );
      await admin.waitFor("breaker.opened");
      await admin.waitFor("job.dead");
      await acme.waitFor("job.dead");
      expect(JSON.stringify(globex.heard)).not.toMatch(marks);
      expect(JSON.stringify(acme.heard)).not.toMatch(/globex/);
      const owners = (watcher: EventWatcher) =>
        new Set(
          watcher.heard.filter(({ event }) => event !== "open").map(({ data }) => data.tenant_id),
        );
      expect(owners(globex)).toEqual(new Set(["globex"]));
      expect(owners(acme)).toEqual(new Set(["acme"]));
      // Audit entries are for managers.
      expect(acme.kinds()).not.toContain("audit");
      expect(globex.kinds()).toContain("audit");
    });

    test("security 22: is capped for each key and in all, and frees its place when it ends", async () => {
      const key = await http.key("staff");
      for (let i = 0; i < 3; i++) await watch({ key });
      expect(await refusalOf({ key })).toBe("429 RATE_LIMITED");
      for (let i = 0; i < 2; i++) await watch({ key: await http.key("staff") });
      const other = await http.key("staff");
      expect(await refusalOf({ key: other })).toBe("429 RATE_LIMITED");
      watchers[0]?.close();
      await until(
        "there is room again",
        async () => (await refusalOf({ key: other })) === "opened",
      );
    });

    test("security 22: ends when its key is revoked, elsewhere too, and when its session is over", async () => {
      const key = await http.key("staff");
      const { keys } = (await http.call("GET", "/api/keys")).body;
      const { id } = keys.at(-1);
      const server = new HttpServer({ millrace: await http.connect(), port: 0, adminKey });
      await server.start();
      try {
        const [here, there] = [await watch({ key }), await watch({ key, url: server.url })];
        const browser = await http.signIn(await http.key("staff"));
        const headers = { ...browser.headers };
        const signedIn = await watch({ headers });
        await http.call("DELETE", `/api/keys/${id}`);
        await http.call("DELETE", "/api/session", browser);
        await until("all three have ended", () =>
          [here, there, signedIn].every(({ hasEnded }) => hasEnded),
        );
      } finally {
        await server.stop();
      }
    });

    test("takes kinds that there are, and ids that were given", async () => {
      expect(await refusalOf({ kinds: "nonsense" })).toBe("400 REQUEST_INVALID");
      expect(await refusalOf({ lastEventId: "x" })).toBe("400 REQUEST_INVALID");
      expect(await refusalOf({ key: "wrong" })).toBe("401 UNAUTHENTICATED");
      expect(await refusalOf({ key: await http.key("robot") })).toBe("403 FORBIDDEN");
    });
  });
}
