// The HTTP service as `dev` and `serve` start it: the one place where its parts are put together.

import type { Millrace } from "../client/millrace.ts";
import type { HttpServer } from "../http/server.ts";
import type { HttpSettings } from "../runtime/http-settings.ts";
import { CommandError } from "./command.ts";
import { dashboardFolder } from "./dashboard-folder.ts";
import { exitCodes } from "./exit-codes.ts";

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
  await listening(choice, () => server.start());
  return { server, hasDashboard: dashboard !== undefined };
}

const codeOf = (error: unknown): unknown =>
  error instanceof Error && "code" in error ? error.code : undefined;

/** Why nobody can listen there, in words, and what to choose instead; any other error as it is. */
export async function listening<T>(
  { host, port, option = "--port" }: { host: string; port: number; option?: string },
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const refused = refusals[String(codeOf(error))];
    if (refused === undefined) throw error;
    const [message, next] = refused(host, port, option);
    throw new CommandError(message, next, exitCodes.failed, error);
  }
}

type Refusal = (host: string, port: number, option: string) => readonly [string, string];

const refusals: Readonly<Record<string, Refusal | undefined>> = {
  EADDRINUSE: (host, port, option) => [
    `Port ${port} of ${host} is taken by another process.`,
    `Choose another: ${option} ${port < 65_535 ? port + 1 : port - 1}; or ${option} 0 for any that is free.`,
  ],
  EACCES: (host, port, option) => [
    `Port ${port} of ${host} may not be used by this account.`,
    `Choose one above 1023: ${option} 7070`,
  ],
  EADDRNOTAVAIL: (host) => [
    `${host} is no address of this machine.`,
    "Set HOST (or --host) to one: 127.0.0.1 for this machine alone, 0.0.0.0 for all of its addresses.",
  ],
};

const mostPorts = 20;

/** The next port that is free, when somebody else has this one. */
export async function startHttpNearby(choice: HttpChoice): Promise<StartedHttp> {
  const ports = Array.from({ length: mostPorts }, (_, n) => choice.port + n);
  for (const port of [...ports.filter((one) => one <= 65_535), 0]) {
    try {
      return await startHttp({ ...choice, port });
    } catch (error) {
      const isTaken = error instanceof CommandError && codeOf(error.cause) === "EADDRINUSE";
      if (!isTaken || port === 0) throw error;
    }
  }
  throw new Error("no port is free");
}
