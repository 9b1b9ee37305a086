// The HTTP service on a database of its own. Every answer is held against the contract: a status or a
// body that the route does not declare fails the test that got it.

import { afterAll, beforeAll } from "vitest";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { contract } from "../../src/http/contract/contract.ts";
import { problem } from "../../src/http/contract/problem.ts";
import type { Route } from "../../src/http/contract/route.ts";
import { refusalsOf } from "../../src/http/openapi.ts";
import { type HttpLimits, HttpServer } from "../../src/http/server.ts";
import type { ConnectOptions } from "../../src/index.ts";
import type { Role } from "../../src/store/api-key.ts";
import { type Instances, useMillrace } from "./instance.ts";

export const adminKey = "an-admin-key-for-tests-only-0123456789";

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
  readonly headers: Headers;
}

export interface CallOptions {
  readonly key?: string | null;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Http extends Instances {
  readonly server: HttpServer;
  readonly baseUrl: string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** A key of this role; without a tenant, of all of them. */
  key(role: Role, tenant?: string): Promise<string>;
  /** Signs in with the key, and gives what the dashboard's own pages send from then on. */
  signIn(key: string): Promise<BrowserCall>;
}

/** A call of a browser that is signed in, from one of our own pages. */
export interface BrowserCall {
  readonly key: null;
  readonly headers: { readonly cookie: string; readonly "sec-fetch-site": "same-origin" };
}

/** The cookie that an answer sets, as the browser sends it back. */
export const cookieOf = ({ headers }: Answer): string =>
  (headers.get("set-cookie") ?? "").split(";")[0] ?? "";

/** Which routes were called, and which codes they refused with: `METHOD /path` → codes and statuses. */
export const seen = new Map<string, Set<string>>();

export function useHttp(limits: Partial<HttpLimits> = {}, options: ConnectOptions = {}): Http {
  const instances = useMillrace(options);
  let server: HttpServer;
  beforeAll(async () => {
    const { millrace } = instances;
    server = new HttpServer({ millrace, port: 0, adminKey, limits });
    await server.start();
  });
  afterAll(() => server.stop());
  const call: Http["call"] = (method, path, more) => send(server.url, method, path, more);
  const own = {
    get server() {
      return server;
    },
    get baseUrl() {
      return server.url;
    },
    call,
    async key(role: Role, tenant?: string) {
      const name = `${role} of ${tenant ?? "all"}`;
      const body = { name, role, ...(tenant === undefined ? {} : { tenant_id: tenant }) };
      return (await call("POST", "/api/keys", { body })).body.key as string;
    },
    async signIn(key: string): Promise<BrowserCall> {
      const answer = await call("POST", "/api/session", { key: null, body: { key } });
      return {
        key: null,
        headers: { cookie: cookieOf(answer), "sec-fetch-site": "same-origin" },
      };
    },
  };
  return Object.defineProperties(own, {
    ...Object.getOwnPropertyDescriptors(instances),
  }) as unknown as Http;
}

export async function send(
  baseUrl: string,
  method: string,
  path: string,
  { key = adminKey, body, headers = {}, signal }: CallOptions = {},
): Promise<Answer> {
  const answer = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await answer.text();
  const isText = answer.headers.get("content-type")?.startsWith("text/plain") === true;
  const parsed = text === "" ? undefined : isText ? text : JSON.parse(text);
  hold(method, path, answer.status, parsed);
  return { status: answer.status, body: parsed, headers: answer.headers };
}

function routeOf(method: string, path: string): Route | undefined {
  const [bare = ""] = path.split("?");
  const parts = bare.replace(/\/$/, "").split("/");
  const fits = ({ path: pattern }: Route) => {
    const wanted = pattern.split("/");
    return (
      wanted.length === parts.length &&
      wanted.every((part, i) => part.startsWith("{") || part === parts[i])
    );
  };
  // A word of its own comes before a parameter.
  const found = contract.filter((route) => route.method === method && fits(route));
  return found.find((route) => !route.path.includes("{")) ?? found[0];
}

/** Holds an answer against the contract, as `send` does. */
export function hold(method: string, path: string, status: number, body: unknown): void {
  const route = routeOf(method, path);
  if (route !== undefined) holdAgainst(route, status, body);
}

function holdAgainst(route: Route, status: number, body: unknown): void {
  const name = `${route.method} ${route.path}`;
  const answers = seen.get(name) ?? new Set();
  seen.set(name, answers);
  const declared = route.answers[status];
  if (declared !== undefined && !(body as { code?: string } | undefined)?.code) {
    answers.add(String(status));
    if (declared.body === undefined) {
      if (body !== undefined) throw new Error(`${name} answered ${status} with a body`);
      return;
    }
    const parsed = declared.body.safeParse(body);
    if (!parsed.success) throw new Error(`${name} answered ${status}: ${parsed.error.message}`);
    return;
  }
  const { code, status: said } = problem.parse(body);
  if (said !== status) throw new Error(`${name} answered ${status}, and said ${said}`);
  if (!refusalsOf(route).includes(code as ErrorCode))
    throw new Error(`${name} refused with ${code}, which it does not declare`);
  answers.add(code);
}
