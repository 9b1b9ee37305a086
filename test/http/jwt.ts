// Tokens of somebody else's: what is believed, and all that is not.

import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { exportJWK, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadHttpSettings } from "../../src/config.ts";
import { type HttpLimits, HttpServer } from "../../src/http/server.ts";
import type { JwtSettings } from "../../src/runtime/jwt-settings.ts";
import { adminKey, send, useHttp } from "../support/http.ts";
import { newQueue, refusal } from "../support/instance.ts";

const issuer = "https://login.example";
const audience = "millrace";
const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const pem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();
const good = {
  ...{ iss: issuer, aud: audience, sub: "ada" },
  ...{ millrace_role: "manager", millrace_tenant: "acme" },
};
const soon = () => Math.floor(Date.now() / 1_000) + 600;
const secret = "a-secret-that-both-sides-share-0123456789";

const sign = (
  payload: JWTPayload,
  key: KeyObject | Uint8Array = rsa.privateKey,
  header: { alg: string; kid?: string } = { alg: "RS256" },
) => new SignJWT({ exp: soon(), ...payload }).setProtectedHeader(header).sign(key);

const without = (name: keyof typeof good) =>
  Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

export function jwtSuite(): void {
  const http = useHttp();

  async function withServer(
    jwt: Partial<JwtSettings>,
    use: (call: (token: string) => ReturnType<typeof send>, url: string) => Promise<void>,
    limits: Partial<HttpLimits> = {},
  ) {
    const server = new HttpServer({
      ...{ millrace: http.millrace, port: 0, adminKey },
      limits: { guessesPerMinute: 1_000, ...limits },
      jwt: { issuer, audience, ...jwt },
    });
    await server.start();
    try {
      await use((key) => send(server.url, "GET", "/api/session", { key }), server.url);
    } finally {
      await server.stop();
    }
  }

  test("a token acts in its role, for its tenant, under the name of its subject", async () => {
    await withServer({ key: pem(rsa.publicKey) }, async (call, url) => {
      const key = await sign(good);
      expect((await call(key)).body).toEqual({
        ...{ name: "ada", role: "manager", tenant: "acme", expires_at: null },
      });
      const name = newQueue();
      const made = await send(url, "POST", "/api/queues", { key, body: { name } });
      expect(made.body).toMatchObject({ tenant_id: "acme" });
      const foreign = { name, tenant_id: "globex" };
      const refused = await send(url, "POST", "/api/queues", { key, body: foreign });
      expect(refused.body.code).toBe("TENANT_FORBIDDEN");
      expect((await send(url, "GET", "/api/keys", { key })).body.code).toBe("FORBIDDEN");
      const { entries } = (await http.call("GET", "/api/audit?action=queue_create")).body;
      expect(entries[0]).toMatchObject({ actor: "jwt:ada", tenant_id: "acme" });
      const everywhere = await call(await sign({ ...good, millrace_tenant: null }));
      expect(everywhere.body.tenant).toBe(null);
      // Keys are accepted as before.
      expect((await call(adminKey)).body.role).toBe("admin");
      expect((await call(await http.key("staff"))).body.role).toBe("staff");
    });
  });

  test("a robot's token holds its leases, and nobody else's does", async () => {
    await withServer({ key: pem(rsa.publicKey) }, async (_, url) => {
      const robot = { ...good, millrace_role: "robot" };
      const [first, other] = [await sign(robot), await sign({ ...robot, sub: "bob" })];
      const name = newQueue();
      const own = { name, tenant_id: "acme" };
      const { id } = (await http.call("POST", "/api/queues", { body: own })).body;
      await send(url, "POST", "/api/queue-items", { key: first, body: { queue_id: id } });
      const path = `/api/queue-items/next?queue_id=${id}`;
      const item = (await send(url, "GET", path, { key: first })).body;
      const end = (key: string) =>
        send(url, "PUT", `/api/queue-items/${item.id}`, {
          ...{ key, body: { status: "DONE", token: item.token } },
        });
      expect((await end(other)).status).toBe(409);
      expect((await end(await sign(robot))).body.status).toBe("DONE");
    });
  });

  describe("security 7: a token is refused", () => {
    const publicPem = pem(rsa.publicKey);
    const other = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    const curve = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const bad: [string, () => Promise<string> | string][] = [
      ["without a signature (none)", () => `${base64({ alg: "none" })}.${base64(good)}.`],
      [
        "signed with the public key as if it were a secret (HS/RS confusion)",
        () => sign(good, Buffer.from(publicPem), { alg: "HS256" }),
      ],
      ["of another algorithm", () => sign(good, curve.privateKey, { alg: "ES256" })],
      ["of another key", () => sign(good, other.privateKey)],
      [
        "that was changed",
        async () => {
          const [head, , tail] = (await sign(good)).split(".");
          const body = { ...good, exp: soon(), millrace_role: "admin" };
          return `${head}.${base64(body)}.${tail}`;
        },
      ],
      ["of another issuer", () => sign({ ...good, iss: "https://evil.example" })],
      ["for another audience", () => sign({ ...good, aud: "somebody-else" })],
      ["without an issuer", () => sign(without("iss"))],
      ["without an audience", () => sign(without("aud"))],
      ["without a subject", () => sign(without("sub"))],
      [
        "without an end",
        () => new SignJWT(good).setProtectedHeader({ alg: "RS256" }).sign(rsa.privateKey),
      ],
      ["that is over", () => sign({ ...good, exp: soon() - 700 })],
      ["that is not valid yet", () => sign({ ...good, nbf: soon() })],
      ["with an unknown role", () => sign({ ...good, millrace_role: "king" })],
      ["without a role", () => sign(without("millrace_role"))],
      ["with several roles", () => sign({ ...good, millrace_role: ["admin"] })],
      ["that names no tenant", () => sign(without("millrace_tenant"))],
      ["whose tenant is no name", () => sign({ ...good, millrace_tenant: 7 })],
      ["whose tenant is blank", () => sign({ ...good, millrace_tenant: "" })],
      ["that is only shaped like one", () => "a.b.c"],
    ];

    let server: HttpServer;
    beforeAll(async () => {
      const jwt = { key: publicPem, issuer, audience };
      server = new HttpServer({ millrace: http.millrace, port: 0, jwt });
      await server.start();
    });
    afterAll(() => server.stop());

    test.each(bad)("%s", async (_, make) => {
      const token = await make();
      const answer = await send(server.url, "GET", "/api/session", { key: token });
      expect([answer.status, answer.body.code]).toEqual([401, "UNAUTHENTICATED"]);
      const right = await send(server.url, "GET", "/api/session", { key: await sign(good) });
      expect(right.status).toBe(200);
    });

    test("by a server that accepts none, and when it signs in instead of a key", async () => {
      const key = await sign(good);
      expect((await http.call("GET", "/api/session", { key })).status).toBe(401);
      await withServer({ key: publicPem }, async (_, url) => {
        const answer = await send(url, "POST", "/api/session", { key: null, body: { key } });
        expect([answer.status, answer.headers.get("set-cookie")]).toEqual([401, null]);
      });
    });

    test("too often, and whoever tries is told to wait", async () => {
      const limits = { guessesPerMinute: 3 };
      await withServer(
        { key: publicPem },
        async (call) => {
          const statuses: number[] = [];
          for (let i = 0; i < 6; i++) statuses.push((await call("a.b.c")).status);
          expect(statuses.slice(0, 3)).toEqual([401, 401, 401]);
          expect(statuses.at(-1)).toBe(429);
          expect((await call(await sign(good))).status).toBe(200);
        },
        limits,
      );
    });

    test("if it is not signed with the secret that both sides share", async () => {
      const claims = { roleClaim: "https://example/role", tenantClaim: "org" };
      await withServer({ key: secret, ...claims }, async (call) => {
        const own = { ...good, "https://example/role": "staff", org: "globex" };
        const bytes = Buffer.from(secret);
        const answer = await call(await sign(own, bytes, { alg: "HS256" }));
        expect(answer.body).toMatchObject({ role: "staff", tenant: "globex" });
        expect((await call(await sign(own))).status).toBe(401);
        const wrong = Buffer.from(`${secret}!`);
        expect((await call(await sign(own, wrong, { alg: "HS256" }))).status).toBe(401);
        expect((await call(await sign(good, bytes, { alg: "HS256" }))).status).toBe(401);
      });
    });
  });

  test("published keys are fetched, kept, and fetched again when a token names a new one", async () => {
    const old = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const fresh = generateKeyPairSync("ed25519");
    const published: object[] = [{ ...(await exportJWK(old.publicKey)), kid: "old" }];
    // One that anybody could sign with: it must not count.
    published.push({ kty: "oct", k: Buffer.from(secret).toString("base64url"), kid: "shared" });
    let asked = 0;
    let isAway = true;
    const keys = createServer((_, answer) => {
      asked++;
      if (isAway) answer.writeHead(500);
      answer.end(JSON.stringify({ keys: published }));
    });
    await new Promise<void>((resolve) => keys.listen(0, "127.0.0.1", resolve));
    const { port } = keys.address() as AddressInfo;
    const jwksUrl = `http://127.0.0.1:${port}/keys.json`;
    const ofOld = () => sign(good, old.privateKey, { alg: "ES256", kid: "old" });
    const ofFresh = () => sign(good, fresh.privateKey, { alg: "EdDSA", kid: "fresh" });
    try {
      await withServer(
        { jwksUrl },
        async (call) => {
          const away = await call(await ofOld());
          expect([away.status, away.body.code]).toEqual([503, "IDENTITY_UNAVAILABLE"]);
          expect(away.headers.get("retry-after")).toBe("1");
          isAway = false;
          expect((await call(await ofOld())).status).toBe(200);
          const before = asked;
          expect((await call(await ofOld())).status).toBe(200);
          expect(asked).toBe(before);
          expect((await call(await ofFresh())).status).toBe(401);
          published.push({ ...(await exportJWK(fresh.publicKey)), kid: "fresh" });
          expect((await call(await ofFresh())).status).toBe(200);
          const shared = { alg: "HS256", kid: "shared" };
          expect((await call(await sign(good, Buffer.from(secret), shared))).status).toBe(401);
        },
        { jwksRefetchMs: 0 },
      );
      const often = asked;
      await withServer({ jwksUrl }, async (call) => {
        const unknown = { alg: "ES256", kid: "unknown" };
        for (let i = 0; i < 20; i++)
          expect((await call(await sign(good, old.privateKey, unknown))).status).toBe(401);
      });
      expect(asked).toBe(often + 1);
    } finally {
      keys.closeAllConnections();
      await new Promise((resolve) => keys.close(resolve));
    }
  });

  test("settings that leave a door open are refused at the start", async () => {
    const weak = generateKeyPairSync("rsa", { modulusLength: 1_024 });
    const privatePem = rsa.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const wrong: Partial<JwtSettings>[] = [
      {},
      { key: "short" },
      { key: "-----BEGIN PUBLIC KEY-----\nnonsense\n-----END PUBLIC KEY-----" },
      { key: privatePem },
      { key: pem(weak.publicKey) },
      { key: secret, jwksUrl: "https://login.example/keys" },
      { jwksUrl: "http://login.example/keys" },
      { jwksUrl: "file:///etc/passwd" },
      { key: secret, issuer: "" },
      { key: secret, audience: "" },
    ];
    for (const jwt of wrong) {
      const error = await refusal(withServer(jwt, async () => {}));
      expect(error.code, JSON.stringify(jwt).slice(0, 80)).toBe("OPTION_INVALID");
      expect(error.message).not.toContain(privatePem.slice(40, 80));
    }
  });

  test("settings come from the environment", () => {
    const env = {
      ...{ MILLRACE_JWT_KEY: pem(rsa.publicKey).replaceAll("\n", "\\n") },
      ...{ MILLRACE_JWT_ISSUER: issuer, MILLRACE_JWT_AUDIENCE: audience },
    };
    expect(loadHttpSettings({}).jwt).toBe(undefined);
    expect(loadHttpSettings(env).jwt).toEqual({
      ...{ key: pem(rsa.publicKey), jwksUrl: undefined, issuer, audience },
      ...{ roleClaim: "millrace_role", tenantClaim: "millrace_tenant" },
    });
    for (const missing of Object.keys(env))
      expect(() => loadHttpSettings({ ...env, [missing]: "" })).toThrow(/need/);
  });

  test("the library for tokens is loaded only where tokens are accepted", () => {
    const folder = join(import.meta.dirname, "..", "..", "src");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const lines = files
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n"))
      .filter((line) => line.includes('"jose"'));
    expect(lines.map((line) => line.trim())).toEqual([
      'import type * as jose from "jose";',
      'const library = await import("jose");',
    ]);
  });
}
