// The frame around all routes: limits, who is calling, validation, problems, and one event per request.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { AddressInfo, Socket } from "node:net";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { createMetrics, type Metrics } from "../client/metrics.ts";
import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import { systemClock } from "../runtime/clock.ts";
import { loadTracing } from "../runtime/load-tracing.ts";
import type { Service as Startable } from "../runtime/service.ts";
import type { Tracing } from "../runtime/tracing.ts";
import { Caller } from "./caller.ts";
import { closeApp, trackSilent } from "./closing.ts";
import { Identities, type Identity } from "./identity.ts";
import { parseInput } from "./input.ts";
import { ItemTaker } from "./item-taker.ts";
import { parseJsonBody } from "./json-body.ts";
import { createOpenApi } from "./openapi.ts";
import { retryAfter, toMillraceError, toProblem } from "./problem.ts";
import { routes } from "./routes/routes.ts";
import type { Served, Service } from "./served.ts";

export interface HttpOptions {
  readonly millrace: Millrace;
  /** 127.0.0.1 unless told. */
  readonly host?: string;
  /** 7070 unless told; 0: any that is free. */
  readonly port?: number;
  /** A key with the role admin that is in no database. */
  readonly adminKey?: string | undefined;
  /** GET /metrics takes no key; MILLRACE_METRICS_PUBLIC of the command line. */
  readonly metricsArePublic?: boolean;
  readonly limits?: Partial<HttpLimits>;
}

export interface HttpLimits {
  readonly bodyBytes: number;
  readonly connections: number;
  /** For a request to arrive whole. */
  readonly requestTimeoutMs: number;
  /** Of one key, unless the key says otherwise. */
  readonly requestsPerSecond: number;
  /** Of wrong keys from one address. */
  readonly guessesPerMinute: number;
}

const defaultLimits: HttpLimits = Object.freeze({
  bodyBytes: 8 * 1024 * 1024,
  connections: 10_000,
  requestTimeoutMs: 25_000,
  requestsPerSecond: 10_000,
  guessesPerMinute: 30,
});

const loopback = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/;

const headers = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

declare module "fastify" {
  interface FastifyRequest {
    identity: Identity | null;
  }
}

export class HttpServer implements Startable {
  readonly name = "http";
  readonly #options: HttpOptions;
  readonly #limits: HttpLimits;
  #app: FastifyInstance | null = null;
  #silent: ReadonlySet<Socket> = new Set();
  #taker: ItemTaker | null = null;
  #metrics: Metrics | null = null;
  #listener: { close(): Promise<void> } | null = null;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    const { adminKey } = options;
    if (adminKey !== undefined && adminKey.length < 24)
      throw new MillraceError(
        "OPTION_INVALID",
        "MILLRACE_ADMIN_KEY must have at least 24 characters.",
      );
  }

  /** Where it listens. */
  get url(): string {
    const address = this.#app?.server.address() as AddressInfo | null | undefined;
    if (address === null || address === undefined) throw new MillraceError("STOPPED");
    const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}`;
  }

  async start(): Promise<void> {
    if (this.#app !== null) return;
    const { host = "127.0.0.1", port = 7070 } = this.#options;
    await this.#refuseOpenDoor(host);
    const service = await this.#createService();
    const app = this.#createApp();
    this.#app = app;
    const tracing = await loadTracing();
    const caller = new Caller(service, this.#limits);
    for (const served of routes) this.#add(app, served, service, caller, tracing);
    app.server.maxConnections = this.#limits.connections;
    this.#silent = trackSilent(app.server);
    try {
      await app.listen({ host, port });
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Robots that wait are told that there is nothing; what is under way is finished. */
  async stop(): Promise<void> {
    await this.#listener?.close();
    await this.#taker?.close();
    this.#metrics?.close();
    if (this.#app !== null) await closeApp(this.#app, this.#silent);
    this.#app = null;
  }

  /** Beyond this machine nothing is served that nobody could have a key for. */
  async #refuseOpenDoor(host: string): Promise<void> {
    const { millrace, adminKey } = this.#options;
    if (loopback.test(host) || adminKey !== undefined) return;
    if ((await millrace.store.service.keys.list(null)).length > 0) return;
    throw new MillraceError(
      "OPTION_INVALID",
      `There is no API key yet, so ${host} is not opened to others. Set MILLRACE_ADMIN_KEY, or make a key with: millrace keys create`,
    );
  }

  async #createService(): Promise<Service> {
    const { millrace, adminKey } = this.#options;
    const { store } = millrace;
    const { items, keys } = store.service;
    const process = randomUUID();
    const taker = new ItemTaker({
      take: (wishes) => items.take(wishes),
      release: (holds) => items.release(holds, process),
      clock: systemClock,
    });
    this.#taker = taker;
    const metrics = createMetrics(millrace, { robots: () => taker });
    this.#metrics = metrics;
    this.#listener = await store.listen((notice) => {
      if (notice.kind === "queues") millrace.queueCache.invalidate();
      taker.hear(notice);
    });
    return {
      ...{ millrace, store, taker, process, metrics },
      metricsArePublic: this.#options.metricsArePublic === true,
      identities: new Identities(keys, adminKey, systemClock),
      openApi: createOpenApi(await packageVersion()),
      clock: systemClock,
      random: Math.random,
    };
  }

  #createApp(): FastifyInstance {
    const { bodyBytes, requestTimeoutMs } = this.#limits;
    const app = fastify({
      bodyLimit: bodyBytes,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: 72_000,
      forceCloseConnections: "idle",
      exposeHeadRoutes: false,
      genReqId: () => randomUUID(),
      http: {
        maxHeaderSize: 16_384,
        headersTimeout: Math.min(requestTimeoutMs, 20_000),
        // How often the two are looked at: what is late is cut off within their sum.
        connectionsCheckingInterval: Math.min(requestTimeoutMs, 5_000),
      },
      routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
      frameworkErrors: (error, request, reply) => this.#refuse(error, request, reply),
    });
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("application/json", { parseAs: "string" }, (_, body, done) => {
      try {
        done(null, parseJsonBody(String(body)));
      } catch (error) {
        done(error as Error);
      }
    });
    app.decorateRequest("identity", null);
    app.addHook("onRequest", async (request, reply) => {
      reply.headers({ ...headers, "x-request-id": request.id });
    });
    app.addHook("onResponse", async (request, reply) => this.#tell(request, reply));
    app.setErrorHandler((error, request, reply) => this.#refuse(error, request, reply));
    app.setNotFoundHandler((request, reply) =>
      this.#refuse(new MillraceError("ROUTE_NOT_FOUND"), request, reply),
    );
    return app;
  }

  #add(
    app: FastifyInstance,
    served: Served,
    service: Service,
    caller: Caller,
    tracing: Tracing | null,
  ): void {
    const { route, answer } = served;
    app.route({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      // Before the body is read: who may not call need not send.
      onRequest: async (request) => {
        if (route.id === "readMetrics" && service.metricsArePublic) return;
        request.identity = await caller.admit(route, request.headers.authorization, request.ip);
      },
      handler: async (request, reply) => {
        const input = parseInput(route, request);
        const identity = request.identity ?? nobody;
        const call = { ...input, identity, gone: () => goneSignal(reply) };
        const answering =
          tracing === null
            ? answer(call, service)
            : tracing.within(request.headers, () => answer(call, service));
        const { status, body, headers: more } = await answering;
        if (more !== undefined) reply.headers(more);
        return reply.code(status).send(body);
      },
    });
  }

  #refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const problem = toProblem(error, request.id);
    const { events } = this.#options.millrace;
    if (problem.status >= 500)
      events.emit("http.failed", {
        request: request.id,
        route: routeOf(request),
        code: problem.code,
        error: toMillraceError(error).cause ?? error,
      });
    const seconds = retryAfter(error);
    if (seconds !== undefined) reply.header("retry-after", String(seconds));
    if (problem.status === 401) reply.header("www-authenticate", 'Bearer realm="millrace"');
    return reply
      .code(problem.status)
      .type("application/problem+json")
      .send(JSON.stringify(problem));
  }

  #tell(request: FastifyRequest, reply: FastifyReply): void {
    const { events } = this.#options.millrace;
    if (!events.wants("http.answered")) return;
    events.emit("http.answered", {
      request: request.id,
      method: request.method,
      route: routeOf(request),
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
      key: request.identity?.keyId ?? null,
      tenant: request.identity?.tenant ?? null,
    });
  }
}

/** The route's path, never the URL: that may hold anything. */
const routeOf = (request: FastifyRequest): string => request.routeOptions?.url ?? "unknown";

const nobody: Identity = Object.freeze({
  keyId: "",
  name: "nobody",
  role: "producer",
  tenant: "",
  rateLimit: null,
  actor: "nobody",
});

function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const { raw } = reply;
  // Who left before we looked is not told of any more.
  if (raw.closed || raw.destroyed || raw.socket?.destroyed !== false) gone.abort();
  raw.once("close", () => {
    if (!raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

async function packageVersion(): Promise<string> {
  const file = new URL("../../package.json", import.meta.url);
  return JSON.parse(await readFile(file, "utf8")).version;
}
