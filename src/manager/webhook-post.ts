// One POST to somebody else's server, made so that it can lead nowhere but there.
//
// The name is resolved once, its addresses are judged, and the socket connects to just these. Nothing is
// followed, nothing is kept open, and of the answer only its head is read.

import { lookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIPv6, type LookupFunction } from "node:net";
import {
  connectionProblem,
  literalAddress,
  parseWebhookUrl,
  type WebhookRules,
} from "../domain/webhook-url.ts";

export interface Address {
  readonly address: string;
  readonly family: number;
}

export interface PostOptions {
  readonly rules: WebhookRules;
  readonly timeoutMs: number;
  readonly resolve?: (hostname: string) => Promise<readonly Address[]>;
}

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

export type PostFailure = "url_refused" | "address_refused" | "unreachable" | "tls" | "timeout";

export type PostResult =
  | { readonly kind: "answered"; readonly status: number; readonly retryAfter: string | undefined }
  | { readonly kind: "failed"; readonly reason: PostFailure };

const mostHeadBytes = 16 * 1024;
const resolveByDns = (hostname: string) => lookup(hostname, { all: true });

/** Throws only when the caller's signal aborts. */
export async function postWebhook(post: Post, options: PostOptions): Promise<PostResult> {
  const { signal } = post;
  signal.throwIfAborted();
  const given = new AbortController();
  const timer = setTimeout(() => given.abort(), options.timeoutMs);
  const stop = () => given.abort();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await unlessAborted(given.signal, attempt(post, options, given.signal));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    // Whatever is still under way has nobody waiting for it.
    given.abort();
    signal.throwIfAborted();
  }
}

function unlessAborted(signal: AbortSignal, result: Promise<PostResult>): Promise<PostResult> {
  const over = new Promise<PostResult>((resolve) => {
    const end = () => resolve({ kind: "failed", reason: "timeout" });
    signal.addEventListener("abort", end, { once: true });
  });
  return Promise.race([result, over]);
}

async function attempt(
  post: Post,
  { rules, resolve = resolveByDns }: PostOptions,
  signal: AbortSignal,
): Promise<PostResult> {
  const url = parsed(post.url, rules);
  if (url === null) return { kind: "failed", reason: "url_refused" };
  let addresses: readonly Address[];
  try {
    addresses = await addressesOf(url, resolve);
  } catch {
    return { kind: "failed", reason: "unreachable" };
  }
  // One bad address spoils the name: whoever answers for it is not to be trusted with the others.
  const isRefused = addresses.some(
    ({ address }) => connectionProblem(url, address, rules) !== null,
  );
  if (isRefused) return { kind: "failed", reason: "address_refused" };
  if (addresses.length === 0 || signal.aborted) return { kind: "failed", reason: "unreachable" };
  return send(url, post, addresses, signal);
}

function parsed(text: string, rules: WebhookRules): URL | null {
  try {
    return parseWebhookUrl(text, rules);
  } catch {
    return null;
  }
}

async function addressesOf(
  url: URL,
  resolve: NonNullable<PostOptions["resolve"]>,
): Promise<readonly Address[]> {
  const address = literalAddress(url);
  if (address === null) return resolve(url.hostname);
  return [{ address, family: isIPv6(address) ? 6 : 4 }];
}

function send(
  url: URL,
  { headers, body }: Post,
  addresses: readonly Address[],
  signal: AbortSignal,
): Promise<PostResult> {
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    const sent = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      agent: false,
      lookup: answering(addresses),
      maxHeaderSize: mostHeadBytes,
      rejectUnauthorized: true,
      signal,
    });
    const fail = (reason: PostFailure) => resolve({ kind: "failed", reason });
    sent.on("error", (error) => fail(isTlsError(error) ? "tls" : "unreachable"));
    sent.on("close", () => fail("unreachable"));
    sent.on("response", (response: IncomingMessage) => {
      resolve({
        kind: "answered",
        status: response.statusCode ?? 0,
        retryAfter: response.headers["retry-after"],
      });
      response.destroy();
    });
    sent.end(body);
  });
}

/** A resolver that knows only what was judged. */
const answering =
  (addresses: readonly Address[]): LookupFunction =>
  (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else if (first !== undefined) callback(null, first.address, first.family);
  };

const tlsCodes =
  /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH)/;

const isTlsError = (error: Error): boolean =>
  "code" in error && typeof error.code === "string" && tlsCodes.test(error.code);
