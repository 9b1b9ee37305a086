import { describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { send, useHttp } from "../support/http.ts";
import { until } from "../support/until.ts";

export function keysSuite(): void {
  const http = useHttp({ guessesPerMinute: 5 });
  const listed = (key: string) => http.call("GET", "/api/jobs", { key });

  async function create(more: Record<string, unknown> = {}) {
    const body = { name: "k", role: "staff", ...more };
    return (await http.call("POST", "/api/keys", { body })).body;
  }

  describe("security 6: a key", () => {
    test("is shown once, and only a hash of its secret is stored", async () => {
      const made = await create();
      expect(made.key).toMatch(/^mrk_[0-9a-f]{32}_[0-9a-f]{64}$/);
      expect((await listed(made.key)).status).toBe(200);
      const read = await http.call("GET", `/api/keys/${made.id}`);
      expect(read.body).not.toHaveProperty("key");
      const secret = made.key.split("_")[2];
      const rows = await http.query("select k::text as row from millrace.api_key k");
      expect(JSON.stringify(rows)).not.toContain(secret);
      expect(
        JSON.stringify(await http.query("select a::text from millrace.audit a")),
      ).not.toContain(secret);
    });

    test("is refused when a single character of it is wrong", async () => {
      const { key } = await create();
      const last = key.at(-1) === "0" ? "1" : "0";
      expect((await listed(key.slice(0, -1) + last)).status).toBe(401);
      expect((await listed(key)).status).toBe(200);
    });

    test("that was revoked is refused at once here, and within five seconds by other servers", async () => {
      const { id, key } = await create();
      const other = new HttpServer({ millrace: await http.connect(), port: 0 });
      await other.start();
      try {
        expect((await send(other.url, "GET", "/api/jobs", { key })).status).toBe(200);
        const revoked = await http.call("DELETE", `/api/keys/${id}`);
        expect(revoked.body.revoked_at).not.toBe(null);
        expect((await listed(key)).status).toBe(401);
        await until(
          "the other server refuses it",
          async () => (await send(other.url, "GET", "/api/jobs", { key })).status === 401,
        );
        expect((await http.call("DELETE", `/api/keys/${id}`)).body.id).toBe(id);
      } finally {
        await other.stop();
      }
    });

    test("expires", async () => {
      const { id, key } = await create({ expires_at: "2100-01-01T00:00:00Z" });
      await http.query(
        "update millrace.api_key set expires_at = now() - interval '1 s' where id = $1",
        [id],
      );
      expect((await listed(key)).status).toBe(401);
    });

    test("gets a new secret while the old one works on, as long as was said", async () => {
      const { id, key } = await create();
      const path = `/api/keys/${id}/rotate`;
      const second = (await http.call("POST", path)).body.key;
      expect((await listed(key)).status).toBe(200);
      expect((await listed(second)).status).toBe(200);
      const third = (await http.call("POST", path, { body: { overlap_seconds: 0 } })).body.key;
      expect((await listed(second)).status).toBe(401);
      expect((await listed(key)).status).toBe(401);
      expect((await listed(third)).status).toBe(200);
    });

    test("says when it was last used", async () => {
      const { id, key } = await create();
      await listed(key);
      await until("the use is noted", async () => {
        const { body } = await http.call("GET", `/api/keys/${id}`);
        return body.last_used_at !== null;
      });
    });

    test("security 22: may call as often as it says, and is then told when to come back", async () => {
      const { key } = await create({ rate_limit: 1 });
      const answers = await Promise.all(Array.from({ length: 10 }, () => listed(key)));
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused.length).toBeGreaterThan(5);
      expect(refused[0]?.body.code).toBe("RATE_LIMITED");
      expect(Number(refused[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
      expect((await listed((await create()).key)).status).toBe(200);
    });

    test("security 8: cannot be guessed at will, and guessing locks nobody else out", async () => {
      const { key } = await create();
      const guess = `${key.slice(0, -4)}ffff`;
      const statuses: number[] = [];
      for (let i = 0; i < 8; i++) statuses.push((await listed(guess)).status);
      expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
      expect(statuses.at(-1)).toBe(429);
      expect((await listed((await create()).key)).status).toBe(200);
    });

    test("of a tenant's admin makes and sees keys of that tenant only", async () => {
      const admin = await http.key("admin", "initech");
      const body = { name: "mine", role: "robot" };
      const made = await http.call("POST", "/api/keys", { key: admin, body });
      expect(made.body.tenant_id).toBe("initech");
      const { keys } = (await http.call("GET", "/api/keys", { key: admin })).body;
      expect(new Set(keys.map((one: { tenant_id: string }) => one.tenant_id))).toEqual(
        new Set(["initech"]),
      );
    });
  });
}
