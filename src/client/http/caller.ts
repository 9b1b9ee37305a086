// One call over HTTP. What may be said twice is said again when the network or the service fails; the
// rest is the caller's to decide. Runs in browsers: nothing of Node is used.

import { type ErrorCode, errorCodes, MillraceError } from "../../domain/errors.ts";

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
}

const worthRepeating = new Set([429, 502, 503, 504]);
const longestPauseMs = 30_000;

export class HttpCaller {
  readonly #options: HttpClientOptions;

  constructor(options: HttpClientOptions) {
    this.#options = options;
  }

  get tenant(): string | undefined {
    return this.#options.tenant;
  }

  /** The body of the answer; null: there is none. Throws MillraceError with the service's code. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const { tries = 5 } = this.#options;
    const most = options.isRepeatable === false ? 1 : tries;
    for (let tried = 1; ; tried++) {
      const answer = await this.#try(method, path, options);
      if (answer instanceof Response && !worthRepeating.has(answer.status))
        return bodyOf<T>(answer);
      if (tried >= most) throw await refusalOf(answer);
      await pause(pauseMs(answer, tried), options.signal);
    }
  }

  async #try(method: string, path: string, options: CallOptions): Promise<Response | Error> {
    const { key, fetch: send = fetch } = this.#options;
    const { body, headers = {}, signal } = options;
    try {
      return await send(this.#address(path, options.query), {
        method,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
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

async function bodyOf<T>(answer: Response): Promise<T> {
  if (!answer.ok) throw await refusalOf(answer);
  const text = await answer.text();
  return (text === "" ? null : JSON.parse(text)) as T;
}

async function refusalOf(answer: Response | Error): Promise<MillraceError> {
  if (answer instanceof Error)
    return new MillraceError("SERVICE_UNAVAILABLE", undefined, { cause: answer });
  const problem = (await answer.json().catch(() => ({}))) as {
    code?: unknown;
    detail?: string;
    details?: object;
  };
  const known = typeof problem.code === "string" && Object.hasOwn(errorCodes, problem.code);
  const code = known ? (problem.code as ErrorCode) : "SERVICE_UNAVAILABLE";
  const details = { status: answer.status, ...problem.details };
  return new MillraceError(code, problem.detail ?? `The answer was ${answer.status}.`, { details });
}

function pauseMs(answer: Response | Error, tried: number): number {
  const said = answer instanceof Response ? Number(answer.headers.get("retry-after")) * 1_000 : 0;
  const ours = 100 * 2 ** tried * (0.5 + Math.random());
  return Math.min(longestPauseMs, said > 0 ? said : ours);
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
