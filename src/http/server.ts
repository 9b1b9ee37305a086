// The HTTP service as something to start and stop. What goes around each request is in frame.ts.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { AddressInfo, Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { createMetrics, type Metrics } from "../client/metrics.ts";
import type { Millrace } from "../client/millrace.ts";
import { countedQueues } from "../client/queue-cache.ts";
import { MillraceError } from "../domain/errors.ts";
import { systemClock } from "../runtime/clock.ts";
import type { JwtSettings } from "../runtime/jwt-settings.ts";
import { loadTracing } from "../runtime/load-tracing.ts";
import type { Service as Startable } from "../runtime/service.ts";
import type { Queue } from "../store/queue.ts";
import { Caller } from "./caller.ts";
import { closeApp, trackSilent } from "./closing.ts";
import { EventFeed } from "./event-feed.ts";
import { addRoute, createFrame } from "./frame.ts";
import { Identities } from "./identity.ts";
import { ItemTaker, type QueueKind } from "./item-taker.ts";
import { JwtVerifier } from "./jwt.ts";
import { createOpenApi } from "./openapi.ts";
import { routes } from "./routes/routes.ts";
import type { Service } from "./served.ts";
import { Sessions } from "./sessions.ts";
import { StaticFiles } from "./static.ts";
import { Tickets } from "./tickets.ts";

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
  /** Whose tokens are accepted besides keys; without it nobody's. */
  readonly jwt?: JwtSettings | undefined;
  /** A folder with the built dashboard; without it there is none. */
  readonly dashboard?: string | undefined;
  /** How many proxies in front say truly who calls and whether over TLS; 0 unless told. */
  readonly trustedProxies?: number;
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
  /** How long a session lasts, and how long without a request. */
  readonly sessionMs: number;
  readonly sessionIdleMs: number;
  /** How many may watch events at a time, and how many with one key. */
  readonly eventStreams: number;
  readonly eventStreamsPerKey: number;
  /** How often at most the published keys of tokens are fetched. */
  readonly jwksRefetchMs: number;
}

const defaultLimits: HttpLimits = Object.freeze({
  bodyBytes: 8 * 1024 * 1024,
  connections: 10_000,
  requestTimeoutMs: 25_000,
  requestsPerSecond: 10_000,
  guessesPerMinute: 30,
  sessionMs: 12 * 3_600_000,
  sessionIdleMs: 3_600_000,
  eventStreams: 1_000,
  eventStreamsPerKey: 10,
  jwksRefetchMs: 10_000,
});

const loopback = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/;

export class HttpServer implements Startable {
  readonly name = "http";
  readonly #options: HttpOptions;
  readonly #limits: HttpLimits;
  readonly #tickets = new Tickets(systemClock);
  #app: FastifyInstance | null = null;
  #silent: ReadonlySet<Socket> = new Set();
  #taker: ItemTaker | null = null;
  #metrics: Metrics | null = null;
  #feed: EventFeed | null = null;
  #listener: { close(): Promise<void> } | null = null;
  #starting: Promise<void> | null = null;
  /** How often it was stopped: a start that was overtaken by one throws STOPPED. */
  #stops = 0;

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

  /** Signs one browser in as the admin key, once and within ten minutes: `<url>/#ticket=<ticket>`. */
  createTicket(): string {
    if (this.#options.adminKey === undefined)
      throw new MillraceError("OPTION_INVALID", "A ticket needs an admin key to sign in with.");
    return this.#tickets.create();
  }

  async start(): Promise<void> {
    if (this.#app !== null && this.#starting === null) return;
    this.#starting ??= this.#start(this.#stops).finally(() => {
      this.#starting = null;
    });
    await this.#starting;
  }

  async #start(stops: number): Promise<void> {
    const { host = "127.0.0.1", port = 7070 } = this.#options;
    const goOn = () => {
      if (stops !== this.#stops) throw new MillraceError("STOPPED");
    };
    try {
      await this.#refuseOpenDoor(host);
      const app = await this.#createFrame();
      const service = await this.#createService();
      this.#app = app;
      const tracing = await loadTracing();
      for (const served of routes) addRoute(app, served, service, tracing);
      app.server.maxConnections = this.#limits.connections;
      this.#silent = trackSilent(app.server);
      goOn();
      await app.listen({ host, port });
      goOn();
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  /** Robots that wait are told that there is nothing; what is under way is finished. */
  async stop(): Promise<void> {
    this.#stops++;
    // What it is about to open can be closed only when it is there.
    await this.#starting?.catch(() => {});
    await this.#close();
  }

  async #close(): Promise<void> {
    await this.#feed?.close();
    await this.#listener?.close();
    await this.#taker?.close();
    this.#metrics?.close();
    if (this.#app !== null) await closeApp(this.#app, this.#silent);
    this.#app = null;
  }

  /** Beyond this machine nothing is served that nobody could have a key for. */
  async #refuseOpenDoor(host: string): Promise<void> {
    const { millrace, adminKey, jwt } = this.#options;
    if (loopback.test(host) || adminKey !== undefined || jwt !== undefined) return;
    if ((await millrace.store.service.keys.list(null)).length > 0) return;
    throw new MillraceError(
      "OPTION_INVALID",
      `There is no API key yet, so ${host} is not opened to others. Set MILLRACE_ADMIN_KEY, or make a key with: millrace keys create`,
    );
  }

  async #createFrame(): Promise<FastifyInstance> {
    const { trustedProxies = 0, millrace, dashboard } = this.#options;
    const files = dashboard === undefined ? null : await StaticFiles.read(dashboard);
    return createFrame({ ...this.#limits, trustedProxies, files, events: millrace.events });
  }

  async #createService(): Promise<Service> {
    const { millrace, adminKey, jwt: settings } = this.#options;
    const { jwksRefetchMs } = this.#limits;
    const jwt = settings === undefined ? null : await JwtVerifier.create(settings, jwksRefetchMs);
    const { store } = millrace;
    const { items, keys } = store.service;
    const process = randomUUID();
    const taker = new ItemTaker({
      take: (wishes) => items.take(wishes),
      release: (holds) => items.release(holds, process),
      queue: async (id) => queueKind(await millrace.queueCache.findById(id)),
      clock: systemClock,
    });
    this.#taker = taker;
    const metrics = createMetrics(millrace, { robots: () => taker });
    this.#metrics = metrics;
    this.#listener = await store.listen((notice) => {
      if (notice.kind === "queues") millrace.queueCache.invalidate();
      taker.hear(notice);
    });
    const feed = new EventFeed({
      events: store.service.events,
      countQueues: () => countedQueues(store),
      ...{ clock: systemClock, limits: this.#limits },
    });
    this.#feed = feed;
    const identities = new Identities(keys, adminKey, systemClock);
    const { sessionMs: lifeMs, sessionIdleMs: idleMs } = this.#limits;
    const life = { lifeMs, idleMs };
    const sessions = new Sessions(store.service.sessions, identities, systemClock, life);
    const known = { identities, sessions, jwt, tickets: this.#tickets };
    return {
      ...{ millrace, store, taker, feed, process, identities, sessions, metrics },
      metricsArePublic: this.#options.metricsArePublic === true,
      caller: new Caller({ ...known, clock: systemClock, limits: this.#limits }),
      openApi: createOpenApi(await packageVersion()),
      clock: systemClock,
      random: Math.random,
    };
  }
}

/** A robot asks for one tenant's items: only turns among tenants do not concern it. */
function queueKind(queue: Queue | null): QueueKind | null {
  if (queue === null) return null;
  const { concurrency, throttle, laned, ageingStepMs } = queue;
  const limits = [concurrency, throttle, ageingStepMs];
  return { limited: laned || limits.some((limit) => limit !== null) };
}

async function packageVersion(): Promise<string> {
  const file = new URL("../../package.json", import.meta.url);
  return JSON.parse(await readFile(file, "utf8")).version;
}
