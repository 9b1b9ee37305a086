// Somebody's server that is told of things: it checks every signature, and answers as the test wants.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type VerifiedWebhook, verifyWebhook } from "../../src/index.ts";
import { until } from "./until.ts";

export interface Received {
  readonly told: VerifiedWebhook;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export type Answer = (response: ServerResponse, received: Received) => void | Promise<void>;

export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(code, headers).end();
  };

/** The request was heard and worked on, and nobody ever learns of it. */
export const cut: Answer = (response) => {
  response.socket?.destroy();
};

export class Receiver {
  readonly url: string;
  /** All requests whose signature was good. */
  readonly received: Received[] = [];
  /** Why others were turned away. */
  readonly refused: unknown[] = [];
  secrets: string[] = [];
  answer: Answer = status(204);
  readonly #server: Server;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async start(tls?: { readonly key: string; readonly cert: string }): Promise<Receiver> {
    const server = tls === undefined ? createServer() : (createTlsServer(tls) as Server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port was given");
    const scheme = tls === undefined ? "http" : "https";
    const receiver = new Receiver(server, `${scheme}://127.0.0.1:${address.port}/hook`);
    server.on("request", (request, response) => void receiver.#hear(request, response));
    return receiver;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** What a receiver counts: a delivery id that it has seen is one it has seen. */
  get distinct(): Map<string, VerifiedWebhook> {
    return new Map(this.received.map(({ told }) => [told.deliveryId, told]));
  }

  async hears(count: number): Promise<Received[]> {
    const enough = () => this.received.length >= count && this.received;
    return until(`the receiver hears ${count} requests`, enough, 45_000);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #hear(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    try {
      const told = verifyWebhook({ secret: this.secrets, headers: request.headers, body });
      const received = { told, headers: request.headers, body };
      this.received.push(received);
      await this.answer(response, received);
    } catch (error) {
      this.refused.push(error);
      response.writeHead(401).end();
    }
  }
}
