// The HTTP service as `dev` and `serve` start it: the one place where its parts are put together.

import type { Millrace } from "../client/millrace.ts";
import type { HttpServer } from "../http/server.ts";
import type { HttpSettings } from "../runtime/http-settings.ts";
import { dashboardFolder } from "./dashboard-folder.ts";

interface HttpChoice extends Omit<HttpSettings, "portIsGiven"> {
  readonly millrace: Millrace;
}

interface StartedHttp {
  readonly server: HttpServer;
  readonly hasDashboard: boolean;
}

/** Loaded here: no other command needs it, and they all start faster without. */
export async function startHttp(choice: HttpChoice): Promise<StartedHttp> {
  const { HttpServer } = await import("../http/server.ts");
  const dashboard = dashboardFolder();
  const server = new HttpServer({ ...choice, dashboard });
  await server.start();
  return { server, hasDashboard: dashboard !== undefined };
}

const mostPorts = 20;

/** The next port that is free, when somebody else has this one. */
export async function startHttpNearby(choice: HttpChoice): Promise<StartedHttp> {
  const ports = Array.from({ length: mostPorts }, (_, n) => choice.port + n);
  for (const port of [...ports.filter((one) => one <= 65_535), 0]) {
    try {
      return await startHttp({ ...choice, port });
    } catch (error) {
      const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
      if (!isTaken || port === 0) throw error;
    }
  }
  throw new Error("no port is free");
}
