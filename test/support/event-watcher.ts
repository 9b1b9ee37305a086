// Somebody who watches /api/events, and keeps what was heard.

import { afterEach } from "vitest";
import { adminKey, type Http, hold } from "./http.ts";
import { newQueue } from "./instance.ts";
import { until } from "./until.ts";

export interface HeardEvent {
  readonly id: string | undefined;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every kind
  readonly data: any;
}

interface WatchOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly kinds?: string;
  readonly lastEventId?: string | undefined;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

export class EventWatcher {
  readonly heard: HeardEvent[] = [];
  readonly comments: string[] = [];
  hasEnded = false;
  readonly #aborter: AbortController;

  private constructor(aborter: AbortController) {
    this.#aborter = aborter;
  }

  /** Resolves when the stream has begun; rejects when it was refused. */
  static async open(baseUrl: string, options: WatchOptions): Promise<EventWatcher> {
    const { headers, kinds, lastEventId } = options;
    const aborter = new AbortController();
    const path = `/api/events${kinds === undefined ? "" : `?kinds=${kinds}`}`;
    const answer = await fetch(`${baseUrl}${path}`, {
      headers: {
        ...headers,
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
      signal: aborter.signal,
    });
    const { body, status } = answer;
    if (status !== 200 || body === null) {
      const problem = (await answer.json()) as { code: string };
      hold("GET", path, status, problem);
      throw new Error(`${status} ${problem.code}`);
    }
    hold("GET", path, 200, undefined);
    const watcher = new EventWatcher(aborter);
    void watcher.#read(body);
    await watcher.waitFor("open");
    return watcher;
  }

  kinds(): string[] {
    return this.heard.map(({ event }) => event);
  }

  get lastId(): string | undefined {
    return this.heard.findLast(({ id }) => id !== undefined)?.id;
  }

  waitFor(event: string, fits: (data: HeardEvent["data"]) => boolean = () => true) {
    return until(`an event "${event}"`, () => {
      const found = this.heard.find((one) => one.event === event && fits(one.data));
      if (found === undefined && this.hasEnded) throw new Error("the stream has ended");
      return found;
    });
  }

  close(): void {
    this.#aborter.abort();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    try {
      for await (const chunk of body) {
        text += decoder.decode(chunk, { stream: true });
        const parts = text.split("\n\n");
        text = parts.pop() ?? "";
        for (const part of parts) this.#take(part);
      }
    } catch {
      // Closed by us, or cut off: both are an end.
    }
    this.hasEnded = true;
  }

  #take(part: string): void {
    const fields = new Map<string, string>();
    for (const line of part.split("\n")) {
      const [name = "", ...rest] = line.split(": ");
      if (name === "") this.comments.push(rest.join(": "));
      else fields.set(name, rest.join(": "));
    }
    const event = fields.get("event");
    if (event === undefined) return;
    this.heard.push({
      id: fields.get("id"),
      event,
      data: JSON.parse(fields.get("data") ?? "null"),
    });
  }
}

interface Watch {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly kinds?: string;
  readonly lastEventId?: string;
  readonly url?: string;
}

/** Watchers that are closed after each test, and things for them to hear of. */
export function useWatchers(http: Http) {
  const watchers: EventWatcher[] = [];
  afterEach(() => {
    for (const watcher of watchers.splice(0)) watcher.close();
  });

  async function watch({ key = adminKey, url, ...more }: Watch = {}): Promise<EventWatcher> {
    const watcher = await EventWatcher.open(url ?? http.baseUrl, {
      headers: bearer(key),
      ...more,
    });
    watchers.push(watcher);
    return watcher;
  }

  return {
    watchers,
    watch,
    refusalOf: (options: Watch) =>
      watch(options).then(
        () => "opened",
        (error: Error) => error.message,
      ),
    makeQueue: async (more = {}) =>
      (await http.call("POST", "/api/queues", { body: { name: newQueue(), ...more } })).body,
    makeBreaker: async (name: string) => {
      await http.millrace.breakers.configure(name, {});
      await http.millrace.breakers.open(name, "a test");
    },
  };
}
