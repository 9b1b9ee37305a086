// One poll for all streams of this process: see docs/design/events.md.

import type { Clock } from "../runtime/clock.ts";
import type { EventStore } from "../store/event.ts";
import type { CountedQueue, EventStream } from "./event-stream.ts";
import { rateLimited } from "./rate-limit.ts";

interface FeedOptions {
  readonly events: EventStore;
  readonly countQueues: () => Promise<readonly CountedQueue[]>;
  readonly clock: Clock;
  readonly limits: { readonly eventStreams: number; readonly eventStreamsPerKey: number };
}

const tickMs = 1_000;
const authoriseEveryMs = 2_000;
const beatEveryMs = 10_000;
const pageSize = 500;

interface Watched {
  readonly stream: EventStream;
  /** It has caught up, and hears what the feed hears. */
  isLive: boolean;
  authorisedAt: number;
  beatAt: number;
}

export class EventFeed {
  readonly #options: FeedOptions;
  readonly #watched = new Set<Watched>();
  readonly #stopping = new AbortController();
  /** The place of the last event that was read. */
  #at = 0;
  #running: Promise<void> | null = null;
  #beginning: Promise<void> | null = null;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Resolves when the stream has begun; what it missed follows, and then what happens. */
  async open(stream: EventStream, lastEventId: number | undefined): Promise<void> {
    this.#refuseTooMany(stream.identity.keyId);
    const now = this.#options.clock.monotonic();
    const watched: Watched = { stream, isLive: false, authorisedAt: now, beatAt: now };
    this.#watched.add(watched);
    stream.body.once("close", () => this.#watched.delete(watched));
    try {
      await this.#begin();
      await this.#place(stream, lastEventId);
    } catch (error) {
      this.#watched.delete(watched);
      throw error;
    }
    void this.#catchUp(watched).catch(() => stream.body.destroy());
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    for (const { stream } of this.#watched) stream.end();
    this.#watched.clear();
    await this.#running;
  }

  #refuseTooMany(keyId: string): void {
    const { eventStreams, eventStreamsPerKey } = this.#options.limits;
    const own = [...this.#watched].filter(({ stream }) => stream.identity.keyId === keyId);
    const isFull = this.#watched.size >= eventStreams || own.length >= eventStreamsPerKey;
    if (isFull || this.#stopping.signal.aborted) throw rateLimited(5);
  }

  /** The first of several streams that come together finds out where the order stands. */
  async #begin(): Promise<void> {
    if (this.#running !== null) return;
    this.#beginning ??= this.#start().finally(() => {
      this.#beginning = null;
    });
    await this.#beginning;
  }

  async #start(): Promise<void> {
    const { events } = this.#options;
    await events.arrange();
    this.#at = (await events.ends()).last;
    this.#running = this.#run();
  }

  async #place(stream: EventStream, lastEventId: number | undefined): Promise<void> {
    if (lastEventId === undefined) return stream.open(this.#at);
    const { first, last } = await this.#options.events.ends();
    const isKept = lastEventId >= first - 1 && lastEventId <= last;
    stream.open(isKept ? lastEventId : this.#at);
    if (!isKept) stream.gap(this.#at);
  }

  async #catchUp(watched: Watched): Promise<void> {
    const { stream } = watched;
    while (stream.at < this.#at && !stream.body.destroyed) {
      const page = await this.#options.events.after(stream.at, pageSize);
      for (const event of page) stream.hear(event);
      if (page.length === 0) break;
      await stream.drained();
    }
    watched.isLive = true;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (this.#watched.size > 0 && !signal.aborted) {
      // A database that is away is asked again; meanwhile nobody can be authorised, and streams end.
      await this.#tell().catch(() => {});
      await Promise.all([...this.#watched].map((one) => this.#look(one)));
      await clock.sleep(tickMs, signal);
    }
    // With the last look at the streams: whoever comes now starts it again.
    this.#running = null;
  }

  async #tell(): Promise<void> {
    const { events, countQueues, clock } = this.#options;
    await events.arrange();
    for (let isMore = true; isMore; ) {
      const page = await events.after(this.#at, pageSize);
      for (const event of page) {
        this.#at = event.no;
        for (const { stream } of this.#live()) stream.hear(event);
      }
      isMore = page.length === pageSize;
    }
    if (![...this.#watched].some(({ stream }) => stream.wantsCounts)) return;
    const queues = await countQueues();
    for (const { stream } of this.#live()) stream.count(queues, clock.now());
  }

  #live(): Watched[] {
    return [...this.#watched].filter(({ isLive }) => isLive);
  }

  async #look(watched: Watched): Promise<void> {
    const { stream } = watched;
    const now = this.#options.clock.monotonic();
    if (now - watched.beatAt >= beatEveryMs) {
      watched.beatAt = now;
      stream.beat();
    }
    if (now - watched.authorisedAt < authoriseEveryMs) return;
    watched.authorisedAt = now;
    const isAllowed = await stream.isAllowed().catch(() => false);
    if (!isAllowed) stream.end();
  }
}
