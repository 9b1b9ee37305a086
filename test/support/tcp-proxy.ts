// A TCP proxy in front of PostgreSQL that loses things. What it can do to an answer that nothing else
// can: let the statement commit and never tell the client.

import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Bytes kept from the chunk before, in case the text lies across two. */
  readonly tails: { client: Buffer; server: Buffer };
  swallowing: boolean;
  /** What comes before the server is done is not lost. */
  passing: boolean;
  /** Nothing passes either way any more. */
  muffled: boolean;
  /** The server is not told that the client has gone. */
  outlives: boolean;
}

interface Trap {
  /** Of a commit's answer, what comes before it passes. */
  readonly lose: "question" | "answer" | "commit's answer";
  readonly side: "client" | "server";
  readonly text: string;
  readonly sprung: () => void;
}

interface Hold {
  readonly text: string;
  readonly outlives: boolean;
  readonly held: (pass: () => void) => void;
}

// "Z", its length, and idle or in a transaction: the server is done with what it was sent.
const readyForQuery = Buffer.from("5a00000005", "hex");
// "S" and its length: with it the server commits.
const sync = Buffer.from("5300000004", "hex");

export class TcpProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #traps: Trap[] = [];
  #holds: Hold[] = [];
  #state: "open" | "refusing" | "silent" = "open";
  /** Whether the next thing that passes is lost. */
  #isLost = () => false;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  /** Stands in front of the server of this URL, under a URL of its own. */
  static async start(target: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(target);
    const listener = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(listener, "listening");
    const address = listener.address();
    if (address === null || typeof address === "string") throw new Error("no port was given");
    const url = new URL(target);
    url.hostname = "127.0.0.1";
    url.port = String(address.port);
    const proxy = new TcpProxy(listener, url.href);
    listener.on("connection", (client) => proxy.#accept(client, hostname, Number(port)));
    return proxy;
  }

  /** Cuts every connection; new ones are welcome. */
  cut(): void {
    for (const pair of this.#pairs) this.#end(pair);
  }

  /** Cuts every connection and refuses new ones, until open(). */
  refuse(): void {
    this.#state = "refusing";
    this.cut();
  }

  /** Connections stay, but nothing passes either way any more, until open(). */
  silence(): void {
    this.#state = "silent";
  }

  /** Connections stay, but nothing passes either way on them any more; new ones are welcome. */
  muffle(): void {
    for (const pair of this.#pairs) pair.muffled = true;
  }

  open(): void {
    if (this.#state === "silent") this.cut();
    this.#state = "open";
    this.#isLost = () => false;
  }

  /** Until open(), whatever passes may be lost, questions and answers alike, and its connection with it. */
  storm(isLost: () => boolean): void {
    this.#isLost = isLost;
  }

  /**
   * The next message from this side with this text in it reaches the server (or came from it), and
   * everything the server says from then on is lost: when it is done, the connection is cut.
   */
  loseAnswer(side: "client" | "server", text: string): Promise<void> {
    return new Promise((sprung) => this.#traps.push({ lose: "answer", side, text, sprung }));
  }

  /** The next message to the server with this text in it is lost, and its connection is cut. */
  loseQuestion(text: string): Promise<void> {
    return new Promise((sprung) =>
      this.#traps.push({ lose: "question", side: "client", text, sprung }),
    );
  }

  /** The same, but what the server says before it commits passes. */
  loseCommitsAnswer(text: string): Promise<void> {
    return new Promise((sprung) =>
      this.#traps.push({ lose: "commit's answer", side: "client", text, sprung }),
    );
  }

  /**
   * The next message to the server with this text in it is kept from being committed: its Sync waits until what this
   * resolves with is called, or is lost with its connection; with `outlives`, the server does not hear that the client
   * has gone.
   */
  holdCommit(text: string, { outlives = false } = {}): Promise<() => void> {
    return new Promise((held) => this.#holds.push({ text, outlives, held }));
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) pair.outlives = false;
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(client: Socket, hostname: string, port: number): void {
    if (this.#state === "refusing") {
      client.destroy();
      return;
    }
    const server = connect({ port, host: hostname, allowHalfOpen: true });
    const tails = { client: Buffer.alloc(0), server: Buffer.alloc(0) };
    const untouched = { swallowing: false, passing: false, muffled: false, outlives: false };
    const pair: Pair = { client, server, tails, ...untouched };
    this.#pairs.add(pair);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      // A goodbye is lost as well where nothing passes.
      socket.on("end", () => this.#isSilent(pair) || this.#end(pair));
      socket.on("error", () => this.#end(pair));
      socket.on("close", () => this.#end(pair));
    }
    client.on("data", (chunk) => this.#pass(pair, "client", chunk));
    server.on("data", (chunk) => this.#pass(pair, "server", chunk));
  }

  #isSilent(pair: Pair): boolean {
    return this.#state === "silent" || pair.muffled;
  }

  #pass(pair: Pair, from: "client" | "server", chunk: Buffer): void {
    if (this.#isSilent(pair)) return;
    if (this.#isLost()) {
      this.#end(pair);
      return;
    }
    const seen = Buffer.concat([pair.tails[from], chunk]);
    const trap = this.#traps.find(({ side, text }) => side === from && seen.includes(text));
    if (trap !== undefined && !pair.swallowing) {
      pair.swallowing = true;
      pair.passing = trap.lose === "commit's answer";
      this.#traps = this.#traps.filter((other) => other !== trap);
      pair.server.once("close", () => trap.sprung());
      if (trap.lose === "question") {
        this.#end(pair);
        return;
      }
    }
    pair.tails[from] = seen.subarray(-200);
    if (from === "client") this.#tellServer(pair, chunk);
    else if (!pair.swallowing) pair.client.write(chunk);
    else {
      const done = seen.indexOf(readyForQuery, Math.max(0, seen.length - chunk.length - 5));
      if (pair.passing)
        pair.client.write(done === -1 ? chunk : chunk.subarray(0, done - seen.length));
      if (done !== -1) this.#end(pair);
    }
  }

  #tellServer(pair: Pair, chunk: Buffer): void {
    const hold = this.#holds.find(({ text }) => chunk.includes(text));
    if (hold === undefined || !chunk.subarray(-sync.length).equals(sync)) {
      pair.server.write(chunk);
      return;
    }
    this.#holds = this.#holds.filter((other) => other !== hold);
    pair.server.write(chunk.subarray(0, -sync.length));
    pair.outlives = hold.outlives;
    hold.held(() => pair.server.write(sync));
  }

  #end(pair: Pair): void {
    pair.client.destroy();
    if (pair.outlives) return;
    this.#pairs.delete(pair);
    pair.server.destroy();
  }
}
