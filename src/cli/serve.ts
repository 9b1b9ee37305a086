import { loadHttpSettings } from "../config.ts";
import type { HttpServer } from "../http/server.ts";
import { type Command, numberOption, textOption, type Values } from "./command.ts";
import { connect, databaseHelp, databaseOptions } from "./connect.ts";
import { startHttp } from "./http-service.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { untilStopped } from "./waiting.ts";

const help = `millrace serve – the HTTP service

Usage: millrace serve [options]

Serves jobs, items for robots, dead letters and their repair over HTTP. Who calls needs an API
key: the one in MILLRACE_ADMIN_KEY, or one made with npx millrace keys create. Without DATABASE_URL
it works on the embedded database. Ctrl-C stops it. Tokens of an identity provider (MILLRACE_JWT_*,
MILLRACE_JWKS_URL) and proxies in front (MILLRACE_TRUSTED_PROXIES): see docs/guides/security.md.

Options:
  --host <address>   where to listen (default: HOST or 127.0.0.1)
  --port <number>    and on which port (default: PORT or 7070; 0: any that is free)
  --manager          keep the queue healthy as well, as millrace manager does
${databaseHelp}
  --for <seconds>    stop after this time
  --json             one JSON line when it is ready instead of text
  -h, --help         this text

Examples:
  MILLRACE_ADMIN_KEY=$(openssl rand -hex 32) npx millrace serve --manager
  DATABASE_URL=postgres://localhost/app HOST=0.0.0.0 npx millrace serve
`;

export const serve: Command = {
  name: "serve",
  summary: "the HTTP service, for people and robots",
  help,
  options: {
    host: { type: "string" },
    port: { type: "string" },
    manager: { type: "boolean" },
    ...databaseOptions,
    for: { type: "string" },
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const settings = loadHttpSettings();
    const host = textOption(values, "host") ?? settings.host;
    const port = numberOption(values, "port", { min: 0, max: 65_535 }) ?? settings.port;
    const seconds = numberOption(values, "for", { min: 0, max: 1_000_000 });
    const stop = new StopRequest(terminal);
    const millrace = await connect(values, terminal);
    let server: HttpServer | undefined;
    try {
      if (values.manager === true) await millrace.manage();
      const started = await startHttp({ ...settings, millrace, host, port });
      server = started.server;
      tell(server.url, started.hasDashboard, values.json === true, terminal);
      await untilStopped(stop.signal, seconds);
    } finally {
      await server?.stop();
      await millrace.stop();
      stop.release();
    }
    return 0;
  },
};

function tell(url: string, hasDashboard: boolean, json: boolean, terminal: Terminal): void {
  const places = hasDashboard ? `${url} (dashboard) and ${url}/api` : `${url}/api`;
  terminal.print(
    json
      ? JSON.stringify({ state: "ready", url })
      : `Serving ${places}, described at ${url}/api/openapi.json; Ctrl-C stops it.`,
  );
}
