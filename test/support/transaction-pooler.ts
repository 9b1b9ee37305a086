// A pooler in transaction mode before a real PostgreSQL: whoever has no transaction open has no server
// connection either, and the next statement runs on whichever is free. Enough of one for what depends on
// sessions to break on it.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

const readyForQuery = 0x5a;
const idle = 0x49;

export async function startTransactionPooler(databaseUrl: string) {
  const { hostname, port } = new URL(databaseUrl);
  const free: Session[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => undefined);
    const upstream = connect(Number(port), hostname);
    sockets.add(upstream);
    // The first session is this client's for its sign-in, and anybody's afterwards.
    let session: Session | null = new Session(upstream);
    const release = () => {
      if (session !== null) free.push(session);
      session = null;
    };
    session.lend(client, release);
    client.on("data", (data) => {
      if (session === null) {
        if (data[0] === 0x58) return; // its goodbye is not the server's
        session = free.pop() ?? null;
        session?.lend(client, release);
      }
      session?.socket.write(data);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { url: url.href, close };
}

class Session {
  readonly socket: Socket;
  #client: Socket | null = null;
  #release: () => void = () => undefined;
  #left = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.on("data", (data) => this.#answer(data));
  }

  lend(client: Socket, release: () => void): void {
    this.#client = client;
    this.#release = release;
  }

  /** What arrives while nobody has the session, a notification for instance, is lost. */
  #answer(data: Buffer): void {
    this.#client?.write(data);
    this.#left = Buffer.concat([this.#left, data]);
    while (this.#left.length >= 5) {
      const length = 1 + this.#left.readInt32BE(1);
      if (this.#left.length < length) return;
      const isOver = this.#left[0] === readyForQuery && this.#left[5] === idle;
      this.#left = this.#left.subarray(length);
      if (isOver && this.#left.length === 0) {
        this.#client = null;
        this.#release();
      }
    }
  }
}
