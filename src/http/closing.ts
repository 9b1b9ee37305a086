// Closing without waiting for those who only keep a connection open.

import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";

const closePatienceMs = 10_000;

/** Connections over which nothing was ever asked; to Node they are busy until their headers are late. */
export function trackSilent(server: FastifyInstance["server"]): ReadonlySet<Socket> {
  const silent = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    silent.add(socket);
    socket.once("close", () => silent.delete(socket));
  });
  server.on("request", (request) => silent.delete(request.socket));
  return silent;
}

/** Connections become idle one by one as their answers go out, and would be kept alive for long. */
export async function closeApp(app: FastifyInstance, silent: ReadonlySet<Socket>): Promise<void> {
  const sweep = setInterval(() => {
    app.server.closeIdleConnections();
    for (const socket of silent) socket.destroy();
  }, 50);
  const force = setTimeout(() => app.server.closeAllConnections(), closePatienceMs);
  try {
    await app.close();
  } finally {
    clearInterval(sweep);
    clearTimeout(force);
  }
}
