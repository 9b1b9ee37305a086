// Fires triggers that are due and ends what their jobs hold. The leader does so, and workers while there is
// none; any number may run: what each does is one transaction that only one of them gets. docs/design/triggers.md

import { MillraceError } from "../domain/errors.ts";
import { failureDelayMs, type TriggerError } from "../domain/trigger.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop, type LoopReport } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
import type { Notice } from "../store/store.ts";
import type { DueTrigger, TriggerSession } from "../store/triggers.ts";

export interface TriggerRunnerOptions {
  readonly session: TriggerSession;
  /** False while somebody else does it. */
  readonly isWanted: () => Promise<boolean>;
  /** It sleeps until the next trigger is due, and this long at most. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const batch = 100;
const mostHolding = 10_000;
/** While jobs hold items or arrivals are waited for: notices may be lost. */
const watchfulMs = 1_000;
/** What is due and in somebody else's hands is looked at again after this. */
const busyMs = 100;

const nobodysFault: ReadonlySet<string> = new Set(["DATABASE_UNAVAILABLE", "NOT_LEADER"]);

export class TriggerRunner implements Service {
  readonly name = "trigger runner";
  readonly #options: TriggerRunnerOptions;
  readonly #loop: Loop;
  /** Jobs made here whose items are to be settled when they end. */
  readonly #holding = new Set<string>();
  #arrivals: readonly number[] = [];
  #off = () => {};

  constructor(options: TriggerRunnerOptions) {
    this.#options = options;
    const run = () => this.#round();
    this.#loop = new Loop({ ...options, name: this.name, retryMs: watchfulMs, run });
  }

  get report(): LoopReport {
    return this.#loop.report;
  }

  async start(): Promise<void> {
    this.#off();
    this.#off = this.#options.events.on("job.settled", ({ id, outcome }) => {
      const isOver = outcome.kind !== "retried" && outcome.kind !== "snoozed";
      if (isOver && this.#holding.delete(id)) this.#loop.wake();
    });
    await this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#off();
    await this.#loop.stop();
  }

  hear(notice: Notice): void {
    const arrived =
      notice.kind === "ready" &&
      this.#arrivals.length > 0 &&
      (notice.queueIds.length === 0 || notice.queueIds.some((id) => this.#arrivals.includes(id)));
    if (arrived || notice.kind === "triggers") this.#loop.wake();
  }

  async #round(): Promise<{ processed: number; nextMs?: number }> {
    const { session, isWanted } = this.#options;
    if (!(await isWanted())) return { processed: 0, nextMs: watchfulMs };
    let processed = 0;
    for (;;) {
      const due = await session.due(batch);
      let fired = 0;
      for (const trigger of due) fired += await this.#fire(trigger);
      processed += fired;
      if (due.length < batch || fired === 0) break;
    }
    processed += await this.#endBatches();
    const { waitMs, arrivals, open } = await session.waitForNext();
    this.#arrivals = arrivals;
    // What others have ended is not heard of here; forgetting costs a second of latency.
    if (!open || this.#holding.size > mostHolding) this.#holding.clear();
    const floorMs = open || arrivals.length > 0 ? watchfulMs : this.#options.intervalMs;
    if (waitMs === null) return { processed, nextMs: floorMs };
    return { processed, nextMs: Math.min(floorMs, waitMs <= 0 ? busyMs : Math.ceil(waitMs)) };
  }

  async #endBatches(): Promise<number> {
    const { session, events } = this.#options;
    let count = 0;
    for (;;) {
      const ended = await session.endBatches(batch);
      for (const one of ended) events.emit("trigger.items_settled", one);
      count += ended.length;
      if (ended.length < batch) return count;
    }
  }

  /** How many jobs it made. */
  async #fire(trigger: DueTrigger): Promise<number> {
    const { session, events } = this.#options;
    const { id, name, tenant } = trigger;
    let jobs = 0;
    try {
      for (let times = 0; times < batch; times++) {
        const fired = await session.fire(id);
        if (fired === null) break;
        const { jobIds, items, missedFrom } = fired;
        if (items > 0) for (const jobId of jobIds) this.#holding.add(jobId);
        if (jobIds.length > 0) events.emit("trigger.fired", { id, name, tenant, jobIds, items });
        if (missedFrom !== null)
          events.emit("trigger.missed", { id, name, tenant, from: missedFrom });
        jobs += jobIds.length;
        if (!fired.again) break;
      }
    } catch (error) {
      await this.#fail(trigger, error);
    }
    return jobs;
  }

  /** Kept with the trigger, unless the database does not answer or this process is leader no more. */
  async #fail({ id, name, tenant, ...trigger }: DueTrigger, error: unknown): Promise<void> {
    const { session, events, random } = this.#options;
    if (error instanceof MillraceError && nobodysFault.has(error.code)) throw error;
    const failures = trigger.failures + 1;
    const delayMs = failureDelayMs(failures, random());
    const retryAt = await session.noteFailure(id, describe(error), delayMs);
    events.emit("trigger.failed", { id, name, tenant, failures, error, retryAt });
  }
}

function describe(error: unknown): TriggerError {
  const code = error instanceof MillraceError ? error.code : "UNEXPECTED";
  const message = error instanceof Error ? error.message : String(error);
  return { code, message: message.slice(0, 500) };
}
