// What the HTTP service asks of the environment; src/config.ts hands it over.

import { blankToNone, type Environment, flag, whole } from "../domain/setting-values.ts";
import { type JwtSettings, readJwtSettings } from "./jwt-settings.ts";

/** Where the HTTP service listens, and whom it believes. */
export interface HttpSettings {
  readonly host: string;
  readonly port: number;
  /** PORT was given: no other will do. */
  readonly portIsGiven: boolean;
  readonly adminKey: string | undefined;
  /** /metrics takes no key. */
  readonly metricsArePublic: boolean;
  /** How many proxies stand in front and say who calls, and whether over TLS. */
  readonly trustedProxies: number;
  readonly jwt: JwtSettings | undefined;
}

export function readHttpSettings(env: Environment): HttpSettings {
  const port = blankToNone(env.PORT);
  const proxies = blankToNone(env.MILLRACE_TRUSTED_PROXIES) ?? "0";
  return Object.freeze({
    host: blankToNone(env.HOST) ?? "127.0.0.1",
    port: whole("PORT", port === undefined ? 7070 : Number(port), 0, 65_535),
    portIsGiven: port !== undefined,
    adminKey: blankToNone(env.MILLRACE_ADMIN_KEY),
    metricsArePublic: flag("MILLRACE_METRICS_PUBLIC", env.MILLRACE_METRICS_PUBLIC) ?? false,
    trustedProxies: whole("MILLRACE_TRUSTED_PROXIES", Number(proxies), 0, 10),
    jwt: readJwtSettings(env),
  });
}
