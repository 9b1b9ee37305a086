// The metrics of a process that serves nothing else: a manager, or workers. It asks for no key, so it
// listens on this machine only unless it is told otherwise.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createMetrics, type Metrics, metricsContentType } from "../client/metrics.ts";
import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Service } from "../runtime/service.ts";

export interface MetricsServerOptions {
  readonly millrace: Millrace;
  /** 127.0.0.1 unless told. */
  readonly host?: string;
  /** 0: any that is free. */
  readonly port: number;
}

export class MetricsServer implements Service {
  readonly name = "metrics";
  readonly #options: MetricsServerOptions;
  #metrics: Metrics | null = null;
  #server: Server | null = null;
  #starting: Promise<void> | null = null;
  /** How often it was stopped: a start that was overtaken by one throws STOPPED. */
  #stops = 0;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
  }

  get url(): string {
    const address = this.#server?.address() as AddressInfo | null | undefined;
    if (address === null || address === undefined) throw new MillraceError("STOPPED");
    const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
    return `http://${host}:${address.port}/metrics`;
  }

  async start(): Promise<void> {
    if (this.#server !== null && this.#starting === null) return;
    this.#starting ??= this.#start(this.#stops).finally(() => {
      this.#starting = null;
    });
    await this.#starting;
  }

  async #start(stops: number): Promise<void> {
    const { millrace, host = "127.0.0.1", port } = this.#options;
    const metrics = createMetrics(millrace);
    const server = createServer({ requestTimeout: 5_000 }, (request, response) => {
      const isAsked = request.method === "GET" && /^\/metrics\/?(?:\?|$)/.test(request.url ?? "");
      if (!isAsked) return void response.writeHead(404).end();
      void metrics
        .text()
        .then((text) => response.writeHead(200, { "content-type": metricsContentType }).end(text));
    });
    this.#metrics = metrics;
    this.#server = server;
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen({ host, port }, resolve);
      });
      if (stops !== this.#stops) throw new MillraceError("STOPPED");
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#stops++;
    // Node lets a server listen that was closed while it looked up its host.
    await this.#starting?.catch(() => {});
    await this.#close();
  }

  async #close(): Promise<void> {
    this.#metrics?.close();
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }
}
