// The one way to the service: the HTTP client, without a key, because the session's cookie speaks for us.

import { type CallOptions, MillraceError } from "../../../src/client/http/caller.ts";
import { HttpClient } from "../../../src/client/http/http-client.ts";

const { caller } = new HttpClient({ url: location.origin, tries: 2 });

export type Query = NonNullable<CallOptions["query"]>;

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  caller.call<T>("GET", path, { query, signal });

/** What changes something is said once, always as JSON: forms of other sites cannot say that. */
export const send = <T>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body: object = {},
  query: Query = {},
): Promise<T> => caller.call<T>(method, path, { body, query, isRepeatable: false });

export const codeOf = (error: unknown): string =>
  error instanceof MillraceError ? error.code : "UNKNOWN";

/** The service's own sentence, and never more than it said. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return codeOf(error) === "SERVICE_UNAVAILABLE" && !detailOf(error, "status")
    ? "The service does not answer. It may be restarting; this page tries again by itself."
    : error.message;
}

export const detailOf = (error: unknown, name: string): unknown =>
  error instanceof MillraceError ? error.details[name] : undefined;
