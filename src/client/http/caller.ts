// One call over HTTP. What may be said twice is said again when the network or the service fails; the
// rest is the caller's to decide. Runs in browsers: nothing of Node is used.

import { checkFunction, checkOptions, type Known, knownNames } from "../../domain/check-options.ts";
import { type ErrorCode, errorCodes, MillraceError } from "../../domain/errors.ts";
import { checkName, checkNumber } from "../../worker/job-definition.ts";

export { MillraceError };

export interface HttpClientOptions {
  /** Of the service, without /api. */
  readonly url: string;
  /** None in a browser that has signed in: its cookie speaks for it. */
  readonly key?: string;
  /** For keys of all tenants: the tenant to read and act on. */
  readonly tenant?: string;
  /** How often a call that may be repeated is tried; 5 unless told. */
  readonly tries?: number;
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** False: what failed half-way is not said again. */
  readonly isRepeatable?: boolean;
  /** Instead of `tries`: whether to say it once more. The service's own failures count as well then. */
  readonly goesOn?: () => boolean;
  /** How long to wait for each answer; without it as long as fetch does. */
  readonly timeoutMs?: number;
}

/** An answer that arrived whole. */
interface Answer {
  readonly status: number;
  readonly text: string;
  /** 0: it does not say. */
  readonly retryAfterMs: number;
}

const known = knownNames({
  ...{ url: true, key: true, tenant: true, tries: true, fetch: true },
} satisfies Known<HttpClientOptions>);

const worthRepeating = new Set([429, 502, 503, 504]);
const longestPauseMs = 30_000;
const longestBackoffMs = 2_500;

export class HttpCaller {
  readonly #options: HttpClientOptions;

  constructor(options: HttpClientOptions) {
    checkOptions("an HttpClient's options", options, known);
    checkUrl(options.url);
    const { key, tenant } = options;
    if (key !== undefined && (typeof key !== "string" || key.trim() === ""))
      throw new MillraceError("OPTION_INVALID", "key must be a text.");
    if (tenant !== undefined) checkName("tenant", tenant);
    checkNumber("tries", options.tries, 1, 1_000);
    checkFunction("fetch", options.fetch);
    this.#options = options;
  }

  get tenant(): string | undefined {
    return this.#options.tenant;
  }

  /** The body of the answer; null: there is none. Throws MillraceError with the service's code. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const { tries = 5 } = this.#options;
    const most = options.isRepeatable === false ? 1 : tries;
    const body = options.body === undefined ? undefined : toJson(options.body);
    for (let tried = 1; ; tried++) {
      const answer = await this.#try(method, path, body, options);
      if (!(answer instanceof Error) && !isWorthRepeating(answer, options))
        return bodyOf<T>(answer);
      if (options.goesOn === undefined ? tried >= most : !options.goesOn()) throw refusalOf(answer);
      await pause(pauseMs(answer, tried), options.signal);
    }
  }

  async #try(
    method: string,
    path: string,
    body: string | undefined,
    { query, headers = {}, signal, timeoutMs }: CallOptions,
  ): Promise<Answer | Error> {
    const { key, fetch: send = fetch } = this.#options;
    const limits = [
      signal,
      timeoutMs === undefined ? undefined : AbortSignal.timeout(Math.ceil(timeoutMs)),
    ];
    try {
      const answer = await send(this.#address(path, query), {
        method,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body }),
        ...signalOf(limits.filter((one) => one !== undefined)),
      });
      // An answer that breaks off was lost.
      const text = await answer.text();
      // A date, which ours never is, reads as nothing.
      const said = Number(answer.headers.get("retry-after")) * 1_000 || 0;
      return { status: answer.status, text, retryAfterMs: Math.max(0, said) };
    } catch (error) {
      if (signal?.aborted) throw error;
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #address(path: string, query: CallOptions["query"] = {}): string {
    const address = new URL(path, this.#options.url);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) address.searchParams.set(name, String(value));
    return address.href;
  }
}

function checkUrl(url: unknown): void {
  if (typeof url === "string" && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))
    return;
  throw new MillraceError(
    "OPTION_INVALID",
    'url must be the address of the service, such as "http://127.0.0.1:7070".',
  );
}

/** What is no JSON is nothing that the network did. */
function toJson(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw new MillraceError("REQUEST_INVALID", "body: it cannot be written as JSON", { cause });
  }
}

const signalOf = ([first, ...others]: readonly AbortSignal[]) =>
  first === undefined
    ? {}
    : { signal: others.length === 0 ? first : AbortSignal.any([first, ...others]) };

const isWorthRepeating = ({ status }: Answer, { goesOn }: CallOptions): boolean =>
  worthRepeating.has(status) || (goesOn !== undefined && status >= 500);

function bodyOf<T>(answer: Answer): T {
  if (answer.status < 200 || answer.status > 299) throw refusalOf(answer);
  if (answer.text === "") return null as T;
  try {
    return JSON.parse(answer.text) as T;
  } catch (cause) {
    throw new MillraceError("SERVICE_UNAVAILABLE", "The answer is not JSON.", { cause });
  }
}

interface ProblemBody {
  readonly code?: unknown;
  readonly detail?: string;
  readonly details?: object;
}

function refusalOf(answer: Answer | Error): MillraceError {
  if (answer instanceof Error)
    return new MillraceError("SERVICE_UNAVAILABLE", undefined, { cause: answer });
  const problem = problemOf(answer.text);
  const isKnown = typeof problem.code === "string" && Object.hasOwn(errorCodes, problem.code);
  const code = isKnown ? (problem.code as ErrorCode) : "SERVICE_UNAVAILABLE";
  const { status, retryAfterMs } = answer;
  const details = {
    ...{ status, ...(retryAfterMs > 0 ? { retryAfterMs } : {}) },
    ...problem.details,
  };
  return new MillraceError(code, problem.detail ?? `The answer was ${status}.`, { details });
}

function problemOf(text: string): ProblemBody {
  try {
    return (JSON.parse(text) as ProblemBody | null) ?? {};
  } catch {
    return {};
  }
}

/** As long as the service says, and a little, so that not all come back at once. */
function pauseMs(answer: Answer | Error, tried: number): number {
  const said = answer instanceof Error ? 0 : answer.retryAfterMs;
  if (said > 0) return Math.min(longestPauseMs, said * (1 + Math.random() / 5));
  return Math.min(longestBackoffMs, 100 * 2 ** tried * (0.5 + Math.random()));
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end);
  });
}
