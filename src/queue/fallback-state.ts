// Which of a fallback queue's two parts is in use, and the one loop that finds out. Falling back is
// immediate; coming back takes a ping, then what takers owe, then the secondary's items, in this order,
// and until all of that is done the secondary serves and accepts.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { HandsOver } from "./hands-over.ts";
import type { HealthChecked } from "./health.ts";
import { OwedSettles } from "./owed-settles.ts";
import type { Queue, QueueItem } from "./queue.ts";
import { type Bounds, within } from "./within.ts";

export type Part = "primary" | "secondary";

/** `lost`: it may or may not have happened. */
export type Answer<R> =
  | { readonly is: "answered"; readonly value: R }
  | { readonly is: "refused"; readonly error: unknown }
  | { readonly is: "lost" };

export interface FallbackStateOptions {
  readonly name: string;
  readonly healthCheckTimeoutMs: number;
  readonly healthCheckIntervalMs: number;
  readonly isDown: boolean;
  readonly clock: Clock;
  readonly events: Events | undefined;
}

const batch = 500;
/** Each outage adds the enqueues in flight at its beginning; older ones have long been resolved. */
const mostDoubts = 100_000;

export class FallbackState<T> {
  readonly owed: OwedSettles<T>;
  readonly #primary: Queue<T> & HealthChecked;
  readonly #secondary: Queue<T> & HandsOver<T>;
  readonly #options: FallbackStateOptions;
  /** Ids that the secondary has and the primary may have as well. */
  readonly #doubts = new Set<string>();
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  #active: Part;
  #switch = new AbortController();

  constructor(
    primary: Queue<T> & HealthChecked,
    secondary: Queue<T> & HandsOver<T>,
    options: FallbackStateOptions,
  ) {
    this.#primary = primary;
    this.#secondary = secondary;
    this.#options = options;
    this.#active = options.isDown ? "secondary" : "primary";
    this.owed = new OwedSettles(options.clock);
    this.#watching = this.#watch();
  }

  get active(): Part {
    return this.#active;
  }

  /** Aborts when the other part becomes the active one. */
  get switched(): AbortSignal {
    return this.#switch.signal;
  }

  /** Resolves when the check under way, if there is one, is over. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }

  doubt(id: string): void {
    this.#doubts.add(id);
    const [oldest] = this.#doubts;
    if (this.#doubts.size > mostDoubts && oldest !== undefined) this.#doubts.delete(oldest);
  }

  /** True, once, when the primary's item is one that the secondary has or had. */
  resolveDoubt(id: string): boolean {
    return this.#doubts.delete(id);
  }

  /** Asks the primary; when it does not answer, or not in time, the secondary is in use from then on. */
  async ask<R>(call: Promise<R>, bounds: Partial<Bounds<R>> = {}): Promise<Answer<R>> {
    const { clock, healthCheckTimeoutMs: timeoutMs } = this.#options;
    try {
      return { is: "answered", value: await within(call, { clock, timeoutMs, ...bounds }) };
    } catch (error) {
      if (isRefusal(error)) return { is: "refused", error };
      if (bounds.signal?.aborted !== true) this.#fallBack(error);
      return { is: "lost" };
    }
  }

  #fallBack(error: unknown): void {
    if (this.#active === "secondary") return;
    this.#switchTo("secondary");
    this.#options.events?.emit("queue.fell_back", { queue: this.#options.name, error });
  }

  #switchTo(part: Part): void {
    this.#active = part;
    this.#switch.abort();
    this.#switch = new AbortController();
  }

  async #watch(): Promise<void> {
    const { clock, healthCheckIntervalMs } = this.#options;
    for (;;) {
      await clock.sleep(healthCheckIntervalMs, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      await this.#check();
    }
  }

  async #check(): Promise<void> {
    const { healthCheckTimeoutMs } = this.#options;
    const ping = await this.ask(this.#primary.ping(healthCheckTimeoutMs));
    if (ping.is !== "answered" || this.#stop.signal.aborted) return;
    if (this.#active === "secondary") await this.#comeBack();
    else await this.#move(Number.POSITIVE_INFINITY);
  }

  async #comeBack(): Promise<void> {
    if (!(await this.#deliverOwed())) return;
    const { depth } = await this.#secondary.snapshot();
    const first = await this.#move(depth);
    if (first.is === "lost") return;
    this.#switchTo("primary");
    // What was settled or accepted while the others moved.
    await this.#deliverOwed();
    const rest = await this.#move(Number.POSITIVE_INFINITY);
    const drained = first.moved + rest.moved;
    this.#options.events?.emit("queue.recovered", { queue: this.#options.name, drained });
  }

  #deliverOwed(): Promise<boolean> {
    return this.owed.deliver((call) => this.ask(call), this.#primary);
  }

  /**
   * Moves what waits in the secondary, at least so many; less when the primary refuses or is lost.
   * An id that moves is no longer in doubt: the primary's item is then the only one.
   */
  async #move(atLeast: number): Promise<{ moved: number; is: Answer<unknown>["is"] }> {
    let moved = 0;
    while (moved < atLeast) {
      const items = this.#secondary.offer(batch);
      if (items.length === 0) break;
      const doubted = items.filter(({ id }) => this.#doubts.delete(id));
      const now = this.#options.clock.now().getTime();
      const copies = items.map((item) => copyOf(item, now));
      const { is } = await this.ask(this.#primary.enqueueMany(copies));
      if (is !== "answered") {
        for (const { id } of is === "lost" ? items : doubted) this.doubt(id);
        this.#secondary.takeBack(items);
        return { moved, is };
      }
      this.#secondary.handedOver(items);
      moved += items.length;
    }
    return { moved, is: "answered" };
  }
}

function copyOf<T>(item: QueueItem<T>, now: number) {
  const { id, job, priority, correlationId } = item;
  const copy = { id, job, priority, delayMs: Math.max(0, item.readyAt - now) };
  return correlationId === undefined ? copy : { ...copy, correlationId };
}

const notReached = new Set(["REDIS_UNAVAILABLE", "REDIS_CLIENT_MISSING", "TIMEOUT"]);

/** An answer that another queue would have given as well. */
const isRefusal = (error: unknown): boolean =>
  error instanceof MillraceError && !notReached.has(error.code);
