// Keeps what is shown true. The service tells by server-sent events what has changed; where that stream
// cannot be had, everything live is asked for again every few seconds. A hidden tab asks for nothing.

import type { QueryClient } from "@tanstack/react-query";
import type { Topic } from "../api/queries.ts";

export type LiveStatus = "live" | "polling" | "paused";

const everything: readonly Topic[] = [
  ...(["counts", "jobs", "dead-letters", "queues", "triggers"] as const),
  ...(["workers", "breakers", "audit", "tenants"] as const),
];

/** By the first word of an event's name. */
const topicsOf: Readonly<Record<string, readonly Topic[]>> = {
  open: [],
  gap: everything,
  counts: ["counts"],
  job: ["jobs", "counts", "dead-letters"],
  breaker: ["breakers"],
  trigger: ["triggers"],
  leader: ["workers"],
  tenant: ["tenants"],
  queue: ["queues", "counts"],
  audit: ["audit"],
};

const told = [
  ...["open", "gap", "counts", "audit", "job.dead", "job.reprocessed", "job.discarded"],
  ...["queue.created", "queue.changed", "queue.paused", "queue.resumed", "queue.deleted"],
  ...["tenant.paused", "tenant.resumed", "trigger.fired", "trigger.failed", "leader.changed"],
  ...["breaker.opened", "breaker.half_open", "breaker.closed"],
] as const;

const pollMs = 5_000;
/** Events come in bursts; one round of questions answers a whole burst. */
const gatherMs = 1_500;
/** What no event tells of: workers come and go, breakers count, tenants and triggers are made. */
const untold: readonly Topic[] = ["workers", "breakers", "triggers", "tenants"];

export class Live {
  readonly #queries: QueryClient;
  readonly #listeners = new Set<() => void>();
  readonly #due = new Set<Topic>();
  #stream: EventSource | null = null;
  #poll: number | undefined;
  #gather: number | undefined;
  #isHeld = false;
  #hasPaused = false;
  status: LiveStatus = "polling";

  constructor(queries: QueryClient) {
    this.#queries = queries;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly read = (): LiveStatus => this.status;

  /** Returns what ends it. */
  readonly start = (): (() => void) => {
    const update = () => (document.hidden || this.#isHeld ? this.#pause() : this.#resume());
    document.addEventListener("visibilitychange", update);
    update();
    return () => {
      document.removeEventListener("visibilitychange", update);
      this.#pause();
    };
  };

  /** By hand: for whoever wants to read in peace. */
  readonly toggle = (): void => {
    this.#isHeld = !this.#isHeld;
    if (this.#isHeld) this.#pause();
    else this.#resume();
  };

  #resume(): void {
    if (this.#stream !== null) return;
    this.#set("polling");
    // At first nothing is old; after a pause everything may be.
    if (this.#hasPaused) this.#refresh(new Set(everything));
    this.#poll = window.setInterval(() => this.#ask(), pollMs);
    const stream = new EventSource("/api/events");
    this.#stream = stream;
    stream.onopen = () => this.#set("live");
    // The browser tries again by itself, unless it was refused; polling goes on in any case.
    stream.onerror = () => this.#set("polling");
    for (const name of told) stream.addEventListener(name, () => this.#hear(name));
  }

  #pause(): void {
    this.#stream?.close();
    this.#stream = null;
    clearInterval(this.#poll);
    clearTimeout(this.#gather);
    this.#gather = undefined;
    this.#hasPaused = true;
    this.#set("paused");
  }

  #hear(name: string): void {
    this.#set("live");
    const [family = name] = name.split(".");
    for (const topic of topicsOf[family] ?? []) this.#due.add(topic);
    this.#gather ??= window.setTimeout(() => {
      this.#gather = undefined;
      this.#refresh(new Set(this.#due));
      this.#due.clear();
    }, gatherMs);
  }

  /** While the stream is open only what it may not tell of is asked for. */
  #ask(): void {
    this.#refresh(new Set(this.status === "live" ? untold : everything));
  }

  #refresh(topics: ReadonlySet<Topic>): void {
    void this.#queries.invalidateQueries({
      predicate: ({ meta }) => meta?.topics?.some((topic) => topics.has(topic)) ?? false,
    });
  }

  #set(status: LiveStatus): void {
    if (this.status === status) return;
    this.status = status;
    for (const listener of this.#listeners) listener();
  }
}
