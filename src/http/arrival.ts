// What a request says about who sends it, and from where.

import type { FastifyRequest } from "fastify";
import { sessionIdIn } from "./cookie.ts";

export interface Arrival {
  readonly method: string;
  readonly bearer: string | undefined;
  /** Of the cookie; undefined: there is none, or more than one. */
  readonly sessionId: string | undefined;
  readonly address: string;
  /** Over TLS, as far as we or a proxy we trust can see. */
  readonly isSecure: boolean;
  /** Whose page sent it; "unknown": no browser, or one that does not say. */
  readonly page: "own" | "foreign" | "unknown";
}

export function arrivalOf(request: FastifyRequest): Arrival {
  const { headers, host, ip, method, protocol } = request;
  const isSecure = protocol === "https";
  return {
    method,
    bearer: headers.authorization,
    sessionId: headers.cookie === undefined ? undefined : sessionIdIn(headers.cookie, isSecure),
    address: ip,
    isSecure,
    page: pageOf(headers["sec-fetch-site"], headers.origin, host),
  };
}

/** Browsers say where a request comes from; older ones, and pages without TLS, say the origin only. */
function pageOf(
  fetchSite: string | string[] | undefined,
  origin: string | undefined,
  host: string,
): Arrival["page"] {
  if (fetchSite !== undefined) return fetchSite === "same-origin" ? "own" : "foreign";
  if (origin === undefined) return "unknown";
  return URL.canParse(origin) && new URL(origin).host === host ? "own" : "foreign";
}
