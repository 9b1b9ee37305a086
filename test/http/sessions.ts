// Signing in to the dashboard: the cookie, how long it lasts, and what no other site can do with it.

import { describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { Tickets } from "../../src/http/tickets.ts";
import { adminKey, cookieOf, send, useHttp } from "../support/http.ts";
import { refusal } from "../support/instance.ts";
import { until } from "../support/until.ts";

export function sessionsSuite(): void {
  const http = useHttp({ guessesPerMinute: 5 });
  const path = "/api/session";
  const signIn = (body: unknown, headers = {}) =>
    http.call("POST", path, { key: null, body, headers });
  const whoAmI = (cookie: string, url = http.baseUrl) =>
    send(url, "GET", path, { key: null, headers: { cookie } });

  async function newKey(more: Record<string, unknown> = {}) {
    const body = { name: "k", role: "manager", ...more };
    return (await http.call("POST", "/api/keys", { body })).body as { id: string; key: string };
  }

  async function withServer(
    more: Partial<ConstructorParameters<typeof HttpServer>[0]>,
    use: (server: HttpServer) => Promise<void>,
  ) {
    const server = new HttpServer({ millrace: await http.connect(), port: 0, adminKey, ...more });
    await server.start();
    try {
      await use(server);
    } finally {
      await server.stop();
    }
  }

  describe("signing in", () => {
    test("with a key gives a cookie that scripts cannot read and other sites cannot send", async () => {
      const { key } = await newKey({ name: "Ada", role: "staff", tenant_id: "acme" });
      const answer = await signIn({ key });
      expect(answer.body).toEqual({
        ...{ name: "Ada", role: "staff", tenant: "acme" },
        expires_at: expect.any(String),
      });
      const set = answer.headers.get("set-cookie") ?? "";
      expect(set).toMatch(
        /^millrace_session=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/,
      );
      const me = await whoAmI(cookieOf(answer));
      expect(me.body).toEqual(answer.body);
      expect(JSON.stringify(answer.body)).not.toContain(cookieOf(answer).split("=")[1]);
    });

    test("stores only a hash of the id, and neither id nor key in the audit trail", async () => {
      const { id, key } = await newKey();
      const cookie = cookieOf(await signIn({ key }));
      const [, sessionId = ""] = cookie.split("=");
      const rows = JSON.stringify([
        await http.query("select s::text from millrace.session s"),
        await http.query("select a::text from millrace.audit a"),
      ]);
      const hex = Buffer.from(sessionId).toString("hex");
      expect(rows).not.toContain(sessionId);
      expect(rows).not.toContain(hex);
      expect(rows).not.toContain(Buffer.from(sessionId, "base64url").toString("hex"));
      const { entries } = (await http.call("GET", `/api/audit?target=${id}`)).body;
      expect(entries[0]).toMatchObject({ action: "session_start", actor: `key:${id}` });
    });

    test("security 8: the session id changes at sign-in, and the one before is over", async () => {
      const { key } = await newKey();
      const planted = `millrace_session=${"A".repeat(43)}`;
      const first = cookieOf(await signIn({ key }, { cookie: planted }));
      expect(first).not.toBe(planted);
      expect((await whoAmI(planted)).status).toBe(401);
      const second = cookieOf(await signIn({ key }, { cookie: first }));
      expect(second).not.toBe(first);
      expect((await whoAmI(second)).status).toBe(200);
      await until("the first is over", async () => (await whoAmI(first)).status === 401);
      expect((await whoAmI(`${second}; ${first}`)).status).toBe(401);
    });

    test("security 8: sign-in is throttled like key guessing, with keys and with tickets", async () => {
      const { key } = await newKey();
      const guess = { key: `${key.slice(0, -4)}ffff` };
      for (const body of [guess, { ticket: `mrt_${"0".repeat(64)}` }]) {
        const statuses: number[] = [];
        for (let i = 0; i < 8; i++) statuses.push((await signIn(body)).status);
        expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
        expect(statuses.at(-1)).toBe(429);
      }
      // The guesses count for the key wherever it is shown.
      const bearer = await http.call("GET", "/api/jobs", { key: guess.key });
      expect(bearer.status).toBe(429);
      expect((await signIn({ key: (await newKey()).key })).status).toBe(200);
    });

    test("is bound to the key's own number of requests", async () => {
      const { key } = await newKey({ rate_limit: 1 });
      const answers = await Promise.all(Array.from({ length: 8 }, () => signIn({ key })));
      expect(answers.map(({ status }) => status)).toContain(429);
    });

    test("with the admin key works where that key is the server's, and nowhere else", async () => {
      const answer = await signIn({ key: adminKey });
      expect(answer.body).toMatchObject({ name: "admin", role: "admin", tenant: null });
      await withServer({}, async ({ url }) => {
        expect((await whoAmI(cookieOf(answer), url)).status).toBe(200);
      });
      await withServer({ adminKey: `${adminKey}-another` }, async ({ url }) => {
        expect((await whoAmI(cookieOf(answer), url)).status).toBe(401);
      });
    });

    test("with a ticket works once, however often others guessed wrong", async () => {
      const ticket = http.server.createTicket();
      expect(ticket).toMatch(/^mrt_[0-9a-f]{64}$/);
      const answers = await Promise.all([signIn({ ticket }), signIn({ ticket })]);
      const refused = answers.filter(({ status }) => status !== 200);
      expect(refused).toHaveLength(1);
      expect([401, 429]).toContain(refused[0]?.status);
      const cookie = cookieOf(answers.find(({ status }) => status === 200) ?? answers[0]);
      expect((await whoAmI(cookie)).body.role).toBe("admin");
    });

    test("with a ticket works for ten minutes, and not without an admin key", async () => {
      let now = 0;
      const clock = { now: () => new Date(now), monotonic: () => now, sleep: async () => {} };
      const tickets = new Tickets(clock);
      const [first, second] = [tickets.create(), tickets.create()];
      now = 10 * 60_000 - 1;
      expect(tickets.redeem(first)).toBe(true);
      now += 1;
      expect(tickets.redeem(second)).toBe(false);
      const server = new HttpServer({ millrace: http.millrace, port: 0 });
      const error = await refusal(Promise.resolve().then(() => server.createTicket()));
      expect(error.code).toBe("OPTION_INVALID");
    });

    test("over TLS sets a cookie for TLS only, if the proxy that says so is trusted", async () => {
      const { key } = await newKey();
      const tls = { "x-forwarded-proto": "https" };
      const unheard = await signIn({ key }, tls);
      expect(unheard.headers.get("set-cookie")).not.toContain("Secure");
      await withServer({ trustedProxies: 1 }, async ({ url }) => {
        const options = { key: null, body: { key }, headers: tls };
        const answer = await send(url, "POST", path, options);
        const set = answer.headers.get("set-cookie") ?? "";
        expect(set).toMatch(/^__Host-millrace_session=.*; Secure$/);
        const cookie = cookieOf(answer);
        const read = (headers: Record<string, string>) =>
          send(url, "GET", path, { key: null, headers });
        expect((await read({ ...tls, cookie })).status).toBe(200);
        const plainName = cookie.replace("__Host-", "");
        expect((await read({ ...tls, cookie: plainName })).status).toBe(401);
      });
    });
  });

  describe("a session", () => {
    test("ends with its key: at once here, within five seconds elsewhere", async () => {
      const { id, key } = await newKey();
      const cookie = cookieOf(await signIn({ key }));
      await withServer({}, async ({ url }) => {
        expect((await whoAmI(cookie, url)).status).toBe(200);
        await http.call("DELETE", `/api/keys/${id}`);
        expect((await whoAmI(cookie)).status).toBe(401);
        await until("it is over", async () => (await whoAmI(cookie, url)).status === 401);
      });
    });

    test("ends when its key expires", async () => {
      const { id, key } = await newKey();
      const cookie = cookieOf(await signIn({ key }));
      await http.query("update millrace.api_key set expires_at = now() where id = $1", [id]);
      await until("it is over", async () => (await whoAmI(cookie)).status === 401);
    });

    test("ends with the secret that it was opened with", async () => {
      const { id, key } = await newKey();
      const cookie = cookieOf(await signIn({ key }));
      await http.call("POST", `/api/keys/${id}/rotate`);
      expect((await whoAmI(cookie)).status).toBe(200);
      await http.call("POST", `/api/keys/${id}/rotate`, { body: { overlap_seconds: 0 } });
      expect((await whoAmI(cookie)).status).toBe(401);
    });

    test.each(["expires_at", "idle_until"])("is over when its %s has come", async (column) => {
      const { id, key } = await newKey();
      const cookie = cookieOf(await signIn({ key }));
      await http.query(`update millrace.session set ${column} = now() where key_id = $1`, [id]);
      await until("it is over", async () => (await whoAmI(cookie)).status === 401);
      const upkeep = http.millrace.store.upkeep();
      await upkeep.tidy();
      await upkeep.close();
      const rows = await http.query("select from millrace.session where key_id = $1", [id]);
      expect(rows).toEqual([]);
    });

    test("that is used stays open, but never longer than it was made for", async () => {
      const { id, key } = await newKey();
      const { body, ...answer } = await signIn({ key });
      const early = "update millrace.session set idle_until = now() + interval '5 minutes'";
      await http.query(`${early} where key_id = $1`, [id]);
      expect((await whoAmI(cookieOf({ body, ...answer }))).status).toBe(200);
      await until("the use is noted", async () => {
        const later = "idle_until > now() + interval '50 minutes'";
        const sql = `select expires_at from millrace.session where key_id = $1 and ${later}`;
        const [row] = await http.query<{ expires_at: Date }>(sql, [id]);
        if (row === undefined) return undefined;
        expect(row.expires_at.toISOString()).toBe(body.expires_at);
        return true;
      });
    });

    test("ends the oldest one when a key has fifty", async () => {
      const { id, key } = await newKey();
      const oldest = cookieOf(await signIn({ key }));
      for (let i = 0; i < 50; i++) await signIn({ key });
      const count = "select count(*)::int as n from millrace.session where key_id = $1";
      expect(await http.query(count, [id])).toEqual([{ n: 50 }]);
      await until("the oldest is over", async () => (await whoAmI(oldest)).status === 401);
    });

    test("is over after signing out, here and elsewhere, and the cookie goes", async () => {
      const { id, key } = await newKey();
      const browser = await http.signIn(key);
      const { cookie } = browser.headers;
      await withServer({}, async ({ url }) => {
        expect((await whoAmI(cookie, url)).status).toBe(200);
        const out = await http.call("DELETE", path, browser);
        expect(out.status).toBe(204);
        expect(out.headers.get("set-cookie")).toContain("millrace_session=; Path=/; Max-Age=0");
        expect((await whoAmI(cookie)).status).toBe(401);
        await until("it is over", async () => (await whoAmI(cookie, url)).status === 401);
      });
      const { entries } = (await http.call("GET", `/api/audit?target=${id}`)).body;
      expect(entries[0]).toMatchObject({ action: "session_end", actor: `key:${id}` });
    });

    test("acts as its key, and a key in the header comes before it", async () => {
      const { id, key } = await newKey();
      const browser = await http.signIn(key);
      const queue = { name: `made-by-${id}` };
      const made = await http.call("POST", "/api/queues", { ...browser, body: queue });
      expect(made.status).toBe(201);
      const { entries } = (await http.call("GET", "/api/audit?action=queue_create")).body;
      expect(entries[0].actor).toBe(`key:${id}`);
      const { headers } = browser;
      const both = await http.call("GET", path, { key: adminKey, headers });
      expect(both.body).toMatchObject({ role: "admin", expires_at: null });
      expect((await http.call("GET", path, { key: "wrong", headers })).status).toBe(401);
    });
  });
}
