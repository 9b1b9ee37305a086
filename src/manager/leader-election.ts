// One of many managers is leader, for a numbered term. See docs/design/leadership.md.
//
// The own clock ends a term before the database does; what is under way then is refused by the fence.

import type { Clock } from "../runtime/clock.ts";
import type { EventMap, Events } from "../runtime/events.ts";
import type { Service } from "../runtime/service.ts";

/** One candidate's way to the office. No call waits for the office to fall vacant. */
export interface LeaderElection {
  /** A new term, larger than all before; null while another one is in office. */
  campaign(): Promise<number | null>;
  /** False: the term is over or superseded, for good. */
  renew(term: number): Promise<boolean>;
  resign(term: number): Promise<void>;
  close(): Promise<void>;
}

export interface CandidateOptions {
  readonly election: LeaderElection;
  readonly ttlMs: number;
  /**
   * Called with each new term; the next campaign waits until what it returns has ended. The signal's
   * reason says why the term is over.
   */
  readonly serve: (term: number, over: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

export type LossReason = EventMap["leader.lost"]["reason"];

export class Candidate implements Service {
  readonly name = "candidate";
  readonly #options: CandidateOptions;
  #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #term: number | null = null;
  #renewedAt = 0;

  constructor(options: CandidateOptions) {
    this.#options = options;
  }

  /** Null as soon as the term is over by this process's own clock, whatever is still under way. */
  get term(): number | null {
    return this.#leftMs > 0 ? this.#term : null;
  }

  async start(): Promise<void> {
    if (this.#running !== null) return;
    this.#stopping = new AbortController();
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#running = null;
  }

  async #run(): Promise<void> {
    const { clock, random, ttlMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const term = await this.#campaign();
      if (term !== null) await this.#hold(term);
      if (!signal.aborted) await clock.sleep((ttlMs / 4) * (0.8 + 0.4 * random()), signal);
    }
  }

  async #campaign(): Promise<number | null> {
    const { election, clock } = this.#options;
    const sentAt = clock.monotonic();
    const term = await this.#attempt(() => election.campaign(), null);
    if (term === null) return null;
    this.#renewedAt = sentAt;
    this.#term = term;
    return term;
  }

  async #hold(term: number): Promise<void> {
    const { events, serve, election } = this.#options;
    const over = new AbortController();
    events.emit("leader.elected", { term });
    const served = this.#attempt(() => serve(term, over.signal), undefined);
    const reason = await this.#keep(term);
    this.#term = null;
    events.emit("leader.lost", { term, reason });
    over.abort(reason);
    await served;
    // After the services have ended, so that their last writes are still a leader's. Also when answers
    // were lost: the renewals themselves may have arrived, and would keep others waiting.
    if (reason !== "superseded") await this.#attempt(() => election.resign(term), undefined);
  }

  /** Renews until the term ends, and says why it did. Never waits longer than the term lasts. */
  async #keep(term: number): Promise<LossReason> {
    const { clock, ttlMs } = this.#options;
    const { signal } = this.#stopping;
    let pauseMs = ttlMs / 3;
    for (;;) {
      await clock.sleep(Math.min(pauseMs, this.#leftMs), signal);
      if (signal.aborted) return "resigned";
      if (this.#leftMs <= 0) return "not_renewed";
      const answer = await this.#renew(term);
      if (answer === "superseded") return answer;
      pauseMs = answer === "renewed" ? ttlMs / 3 : ttlMs / 20;
    }
  }

  async #renew(term: number): Promise<"renewed" | "superseded" | "unanswered"> {
    const { election, clock } = this.#options;
    const sentAt = clock.monotonic();
    const { signal } = this.#stopping;
    const enough = new AbortController();
    const stop = () => enough.abort();
    signal.addEventListener("abort", stop, { once: true });
    const asked = this.#attempt(() => election.renew(term), null);
    // An answer that comes when the term is over is no longer of interest.
    const tooLate = clock.sleep(this.#leftMs, enough.signal).then(() => null);
    const answer = await Promise.race([asked, tooLate]);
    stop();
    signal.removeEventListener("abort", stop);
    if (answer === null) return "unanswered";
    if (!answer) return "superseded";
    this.#renewedAt = sentAt;
    return "renewed";
  }

  /** The last fifth is for clocks that differ and for what is still on its way. */
  get #leftMs(): number {
    const { clock, ttlMs } = this.#options;
    return this.#renewedAt + 0.8 * ttlMs - clock.monotonic();
  }

  async #attempt<T>(act: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await act();
    } catch (error) {
      this.#options.events.emit("service.failed", { service: this.name, error });
      return otherwise;
    }
  }
}
