// Where a webhook may lead. The URL is judged when it is given; what counts is the judgement of the
// addresses, when connecting.

import { isInNetworks, kindOfAddress, type Network, parseNetwork } from "./address.ts";
import { MillraceError } from "./errors.ts";

/** What the operator allows beyond public HTTPS receivers. */
export interface WebhookOptions {
  /** For development: plain HTTP and any port, on this machine's own addresses only. */
  readonly allowInsecureLoopback?: boolean;
  /** Networks of yours that receivers may be in, such as "10.1.0.0/16". */
  readonly allowedNetworks?: readonly string[];
  /** Beside 443 and 8443. */
  readonly allowedPorts?: readonly number[];
}

export interface WebhookRules {
  readonly allowInsecureLoopback: boolean;
  readonly allowedNetworks: readonly Network[];
  readonly allowedPorts: readonly number[];
}

const known = ["allowInsecureLoopback", "allowedNetworks", "allowedPorts"];
const usualPorts = [443, 8443];
const longestUrl = 2_000;

export function createWebhookRules(options: WebhookOptions = {}): WebhookRules {
  if (typeof options !== "object" || options === null) throw invalid("webhooks must be an object.");
  const { allowInsecureLoopback = false, allowedNetworks = [], allowedPorts = [] } = options;
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(`webhooks has no option "${unknown}".`);
  if (!Array.isArray(allowedNetworks)) throw invalid("webhooks.allowedNetworks must be a list.");
  if (!Array.isArray(allowedPorts)) throw invalid("webhooks.allowedPorts must be a list.");
  if (typeof allowInsecureLoopback !== "boolean")
    throw invalid("webhooks.allowInsecureLoopback must be true or false.");
  const networks = allowedNetworks.map((text) => {
    const network = parseNetwork(text);
    if (network === null)
      throw invalid("webhooks.allowedNetworks must be networks such as 10.1.0.0/16.");
    return network;
  });
  if (!allowedPorts.every((port) => Number.isInteger(port) && port >= 1 && port <= 65_535))
    throw invalid("webhooks.allowedPorts must be port numbers.");
  return Object.freeze({
    allowInsecureLoopback,
    allowedNetworks: networks,
    allowedPorts: [...usualPorts, ...allowedPorts],
  });
}

const invalid = (message: string) => new MillraceError("OPTION_INVALID", message);

/** The URL, or why it is refused. No message repeats it: it may hold a token. */
export function parseWebhookUrl(text: unknown, rules: WebhookRules): URL {
  const url = typeof text === "string" && text.length <= longestUrl ? parse(text) : null;
  if (url === null) throw refused("it is not a URL of at most 2,000 characters");
  const problem = urlProblem(url, rules);
  if (problem !== null) throw refused(problem);
  return url;
}

function parse(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function urlProblem(url: URL, rules: WebhookRules): string | null {
  const plain = url.protocol === "http:" && rules.allowInsecureLoopback;
  if (url.protocol !== "https:" && !plain) return "only https is allowed";
  if (url.username !== "" || url.password !== "") return "it must not hold a user or a password";
  const address = literalAddress(url);
  if (address !== null) return connectionProblem(url, address, rules);
  return rules.allowInsecureLoopback ? null : portProblem(url, rules);
}

/** Why this address may not be connected to for this URL; null when it may. */
export function connectionProblem(url: URL, address: string, rules: WebhookRules): string | null {
  const kind = kindOfAddress(address);
  if (kind === "loopback" && rules.allowInsecureLoopback) return null;
  if (url.protocol !== "https:") return "only https is allowed";
  const isAllowed = kind === "public" || isInNetworks(address, rules.allowedNetworks);
  return isAllowed ? portProblem(url, rules) : "its address is not a public one";
}

function portProblem(url: URL, rules: WebhookRules): string | null {
  const port = url.port === "" ? 443 : Number(url.port);
  return rules.allowedPorts.includes(port) ? null : "its port is not allowed";
}

/** The parser has undone spellings such as 0x7f.1 by now: what looks like a name is one. */
export function literalAddress(url: URL): string | null {
  if (url.hostname.startsWith("[")) return url.hostname.slice(1, -1);
  return /^[\d.]+$/.test(url.hostname) ? url.hostname : null;
}

const refused = (why: string) =>
  new MillraceError("WEBHOOK_URL_REFUSED", `The webhook's URL is refused: ${why}.`);
