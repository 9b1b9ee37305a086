// The frame around all routes: limits, validation, problems, and one event per request.

import { randomUUID } from "node:crypto";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { MillraceError } from "../domain/errors.ts";
import type { Events } from "../runtime/events.ts";
import type { Tracing } from "../runtime/tracing.ts";
import { type Arrival, arrivalOf } from "./arrival.ts";
import type { Admitted } from "./caller.ts";
import type { Identity } from "./identity.ts";
import { parseInput } from "./input.ts";
import { readJsonBody } from "./json-body.ts";
import { retryAfter, toMillraceError, toProblem } from "./problem.ts";
import type { Served, Service } from "./served.ts";
import type { StaticFiles } from "./static.ts";
import { refuseUnreadable } from "./unreadable.ts";

interface FrameOptions {
  readonly events: Events;
  readonly bodyBytes: number;
  readonly requestTimeoutMs: number;
  readonly trustedProxies: number;
  /** null: there is no dashboard. */
  readonly files: StaticFiles | null;
}

const headers = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

declare module "fastify" {
  interface FastifyRequest {
    arrival: Arrival | null;
    admitted: Admitted | null;
  }
}

export function createFrame(options: FrameOptions): FastifyInstance {
  const { events, bodyBytes, requestTimeoutMs, trustedProxies, files } = options;
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
    refuseWith(events, error, request, reply);
  const app = fastify({
    bodyLimit: bodyBytes,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 72_000,
    forceCloseConnections: "idle",
    exposeHeadRoutes: false,
    trustProxy: trustedProxies === 0 ? false : (_, hop) => hop < trustedProxies,
    genReqId: () => randomUUID(),
    http: {
      maxHeaderSize: 16_384,
      headersTimeout: Math.min(requestTimeoutMs, 20_000),
      // How often the two are looked at: what is late is cut off within their sum.
      connectionsCheckingInterval: Math.min(requestTimeoutMs, 5_000),
    },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 200 },
    frameworkErrors: refuse,
    clientErrorHandler: refuseUnreadable(headers),
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_, body, done) => {
    try {
      done(null, readJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
  app.decorateRequest("arrival", null);
  app.decorateRequest("admitted", null);
  app.addHook("onRequest", async (request, reply) => {
    reply.headers({ ...headers, "x-request-id": request.id });
  });
  app.addHook("onResponse", async (request, reply) => tell(events, request, reply));
  app.setErrorHandler(refuse);
  app.setNotFoundHandler(
    (request, reply) =>
      files?.answer(request, reply) ?? refuse(new MillraceError("ROUTE_NOT_FOUND"), request, reply),
  );
  return app;
}

export function addRoute(
  app: FastifyInstance,
  { route, answer }: Served,
  service: Service,
  tracing: Tracing | null,
): void {
  app.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    // Before the body is read: who may not call need not send.
    onRequest: async (request) => {
      request.arrival = arrivalOf(request);
      if (route.id === "readMetrics" && service.metricsArePublic) return;
      request.admitted = await service.caller.admit(route, request.arrival);
    },
    handler: async (request, reply) => {
      const input = parseInput(route, request);
      const { identity, session } = request.admitted ?? { identity: nobody, session: null };
      const arrival = request.arrival ?? arrivalOf(request);
      const call = { ...input, identity, session, arrival, gone: () => goneSignal(reply) };
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

function refuseWith(
  events: Events,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const problem = toProblem(error, request.id);
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
  return reply.code(problem.status).type("application/problem+json").send(JSON.stringify(problem));
}

function tell(events: Events, request: FastifyRequest, reply: FastifyReply): void {
  if (!events.wants("http.answered")) return;
  const identity = request.admitted?.identity;
  events.emit("http.answered", {
    request: request.id,
    method: request.method,
    route: routeOf(request),
    status: reply.statusCode,
    durationMs: reply.elapsedTime,
    key: identity?.keyId ?? null,
    tenant: identity?.tenant ?? null,
  });
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
