// The dashboard's files: types, caching, compression, the policy that browsers hold them to, and that no
// path leads out of the folder.

import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { adminKey, send } from "../support/http.ts";
import { refusal, useMillrace } from "../support/instance.ts";

const script = `console.log(${JSON.stringify("text ".repeat(1_000))});`;
const page = '<!doctype html><script type="module" src="/assets/app-Bx3kQ9_a.js"></script>';

interface RawAnswer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export function staticSuite(): void {
  const instances = useMillrace();
  let folder: string;
  let server: HttpServer;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-dashboard-"));
    await mkdir(join(folder, "inside", "assets"), { recursive: true });
    const inside = join(folder, "inside");
    await writeFile(join(folder, "secret.txt"), "outside");
    await symlink(join(folder, "secret.txt"), join(inside, "link.txt"));
    await writeFile(join(inside, "index.html"), page);
    await writeFile(join(inside, ".env"), "hidden");
    await writeFile(join(inside, "icon.svg"), "<svg/>");
    await writeFile(join(inside, "assets", "plain.css"), "p {}");
    await writeFile(join(inside, "assets", "app-Bx3kQ9_a.js"), script);
    const { millrace } = instances;
    server = new HttpServer({ millrace, port: 0, adminKey, dashboard: inside });
    await server.start();
  });
  afterAll(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });

  /** As it stands: fetch would tidy the path up and unpack the body. */
  const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    new Promise<RawAnswer>((resolve, reject) => {
      const { hostname, port } = new URL(server.url);
      const sent = request({ hostname, port, path, headers, method }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk) => chunks.push(chunk));
        answer.on("end", () => {
          const { statusCode: status, headers: got } = answer;
          resolve({ status, headers: got, body: Buffer.concat(chunks) });
        });
      });
      sent.on("error", reject);
      sent.end();
    });
  const html = { accept: "text/html,application/xhtml+xml" };

  test("are served with their types", async () => {
    const wanted: [string, RegExp, string][] = [
      ["/index.html", /^text\/html/, page],
      ["/icon.svg", /^image\/svg\+xml$/, "<svg/>"],
      ["/assets/plain.css", /^text\/css/, "p {}"],
      ["/assets/app-Bx3kQ9_a.js", /^text\/javascript/, script],
      ["/assets/app-Bx3kQ9_a.js?v=1", /^text\/javascript/, script],
    ];
    for (const [path, type, body] of wanted) {
      const answer = await get(path);
      expect([answer.status, answer.body.toString()]).toEqual([200, body]);
      expect(answer.headers["content-type"]).toMatch(type);
    }
    const head = await get("/index.html", {}, "HEAD");
    expect([head.status, head.body.length]).toEqual([200, 0]);
  });

  test("security 12: come with a policy that allows nothing inline, no frame and no sniffing", async () => {
    for (const path of ["/", "/index.html", "/queues/7", "/assets/plain.css"]) {
      const { headers } = await get(path, html);
      const policy = String(headers["content-security-policy"]);
      for (const part of [
        "default-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "object-src 'none'",
      ])
        expect(policy).toContain(part);
      expect(policy).not.toMatch(/unsafe|data:|\*|http/);
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["referrer-policy"]).toBe("no-referrer");
    }
  });

  test("are index.html for every page of the application, and for nothing of the service", async () => {
    for (const path of ["/", "/queues", "/jobs/1?tab=timeline", "/apis", "/deep/er/page"])
      expect((await get(path, html)).body.toString(), path).toBe(page);
    for (const path of [
      ...["/api/nothing", "/api", "/api/", "/metrics/x", "/healthz/x", "/readyz/x"],
      ...["/assets/gone-12345678.js"],
    ]) {
      const answer = await get(path, html);
      expect([answer.status, path]).toEqual([404, path]);
      expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
    }
    // Whoever does not ask for a page gets none.
    expect((await get("/queues")).status).toBe(404);
    expect((await get("/", { accept: "*/*" })).body.toString()).toBe(page);
    expect((await get("/queues", html, "POST")).status).toBe(404);
    expect((await send(server.url, "GET", "/healthz")).body).toEqual({ status: "ok" });
    expect((await send(server.url, "GET", "/api/jobs", { key: null })).status).toBe(401);
  });

  test("are kept for good where the name has a hash, and asked for again elsewhere", async () => {
    const hashed = await get("/assets/app-Bx3kQ9_a.js");
    expect(hashed.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    for (const path of ["/index.html", "/assets/plain.css", "/icon.svg"]) {
      const first = await get(path);
      expect(first.headers["cache-control"]).toBe("no-cache");
      const etag = String(first.headers.etag);
      const again = await get(path, { "if-none-match": `"other", W/${etag}` });
      expect([again.status, again.body.length]).toEqual([304, 0]);
      expect((await get(path, { "if-none-match": '"other"' })).status).toBe(200);
    }
  });

  test("are compressed as the browser likes it", async () => {
    const path = "/assets/app-Bx3kQ9_a.js";
    const br = await get(path, { "accept-encoding": "gzip, deflate, br" });
    expect(br.headers["content-encoding"]).toBe("br");
    expect(brotliDecompressSync(br.body).toString()).toBe(script);
    const gzip = await get(path, { "accept-encoding": "br;q=0, gzip;q=0.5" });
    expect(gzip.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(gzip.body).toString()).toBe(script);
    const plain = await get(path, { "accept-encoding": "identity" });
    expect(plain.headers["content-encoding"]).toBe(undefined);
    expect(plain.body.toString()).toBe(script);
    expect(new Set([br, gzip, plain].map(({ headers }) => headers.etag)).size).toBe(3);
    expect(br.headers.vary).toBe("accept-encoding");
    expect((await get("/icon.svg", { "accept-encoding": "br" })).body.toString()).toBe("<svg/>");
  });

  test("lead nowhere outside the folder, and not to hidden files or links", async () => {
    for (const path of [
      ...["/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt"],
      ...["/link.txt", "/.env", "//secret.txt", "/assets/", "/assets", "/\\..\\secret.txt"],
      ...["/%00", "/%", "/__proto__", "/constructor"],
    ]) {
      const answer = await get(path);
      expect([400, 404], path).toContain(answer.status);
      expect(answer.body.toString()).not.toMatch(/outside|hidden/);
    }
  });

  test("need an index.html", async () => {
    const { millrace } = instances;
    const empty = new HttpServer({
      millrace,
      port: 0,
      dashboard: join(folder, "inside", "assets"),
    });
    const error = await refusal(empty.start());
    expect([error.code, error.message]).toEqual([
      "OPTION_INVALID",
      expect.stringContaining("There is no index.html"),
    ]);
    const nowhere = new HttpServer({ millrace, port: 0, dashboard: join(folder, "nowhere") });
    expect((await refusal(nowhere.start())).code).toBe("OPTION_INVALID");
  });
}
