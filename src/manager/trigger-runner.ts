// Fires triggers that are due and ends what their jobs hold. The leader does so, and workers while there is
// none; any number may run: what each does is one transaction that only one of them gets. docs/design/triggers.md

import { MillraceError } from "../domain/errors.ts";
import { failureDelayMs, type TriggerError } from "../domain/trigger.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop, type LoopReport } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
import type { Notice } from "../store/store.ts";
import type { DueTrigger, Fired, TriggerSession } from "../store/triggers.ts";

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
/** Time triggers that share a transaction, and what a burst of them may take before items are looked after. */
const together = 20;
const mostPasses = 10;
const mostHolding = 10_000;
/** While jobs hold items or arrivals are waited for: notices may be lost. */
const watchfulMs = 1_000;
/** What is due and in somebody else's hands is looked at again after this. */
const busyMs = 100;

const nobodysFault: ReadonlySet<string> = new Set(["DATABASE_UNAVAILABLE", "NOT_LEADER"]);

/** Jobs that were made, and how often a trigger was dealt with. */
interface Tally {
  jobs: number;
  triggers: number;
}

const isNobodysFault = (error: unknown): boolean =>
  error instanceof MillraceError && nobodysFault.has(error.code);

export class TriggerRunner implements Service {
  readonly name = "trigger runner";
  readonly #options: TriggerRunnerOptions;
  readonly #loop: Loop;
  /** Jobs made here whose items are to be settled when they end. */
  readonly #holding = new Set<string>();
  #arrivals: readonly number[] = [];
  /** Since when something has been due all the time, by the database's clock. */
  #busySince: Date | null = null;
  #stopping = false;
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
    this.#stopping = false;
    this.#off = this.#options.events.on("job.settled", ({ id, outcome }) => {
      const isOver = outcome.kind !== "retried" && outcome.kind !== "snoozed";
      if (isOver && this.#holding.delete(id)) this.#loop.wake();
    });
    await this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#off();
    this.#stopping = true;
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
    if (!(await isWanted())) {
      this.#busySince = null;
      return { processed: 0, nextMs: watchfulMs };
    }
    let processed = await this.#fireDue();
    processed += await this.#endBatches();
    const { waitMs, arrivals, open } = await session.waitForNext();
    this.#arrivals = arrivals;
    // What others have ended is not heard of here; forgetting costs a second of latency.
    if (!open || this.#holding.size > mostHolding) this.#holding.clear();
    const floorMs = open || arrivals.length > 0 ? watchfulMs : this.#options.intervalMs;
    if (waitMs === null) return { processed, nextMs: floorMs };
    return { processed, nextMs: Math.min(floorMs, waitMs <= 0 ? busyMs : Math.ceil(waitMs)) };
  }

  /** How many jobs were made. A slot is not late for what the runner does before it comes to it. */
  async #fireDue(): Promise<number> {
    const tally = { jobs: 0, triggers: 0 };
    let seenAt = this.#busySince;
    // After an error nobody knows for how long nothing was fired.
    this.#busySince = null;
    for (let pass = 0; pass < mostPasses && !this.#stopping; pass++) {
      const due = await this.#options.session.due(batch);
      seenAt ??= due[0]?.seenAt ?? null;
      if (seenAt === null) return tally.jobs;
      const before = tally.triggers;
      await this.#fireAll(due, seenAt, tally);
      if (due.length < batch || tally.triggers === before) return tally.jobs;
    }
    this.#busySince = seenAt;
    return tally.jobs;
  }

  async #fireAll(due: readonly DueTrigger[], seenAt: Date, tally: Tally): Promise<void> {
    const timed = due.filter(({ type }) => type === "TIME");
    for (let from = 0; from < timed.length; from += together)
      await this.#fireTogether(timed.slice(from, from + together), seenAt, tally);
    for (const trigger of due)
      if (trigger.type === "QUEUE") await this.#fire(trigger, seenAt, tally);
  }

  /** One that cannot fire must not keep the others: then each is tried by itself. */
  async #fireTogether(some: readonly DueTrigger[], seenAt: Date, tally: Tally): Promise<void> {
    const ids = some.map(({ id }) => id);
    try {
      const all = await this.#options.session.fireTogether(ids, seenAt);
      for (const [i, trigger] of some.entries()) this.#tell(trigger, all[i] ?? null, tally);
    } catch (error) {
      if (isNobodysFault(error)) throw error;
      for (const trigger of some) await this.#fire(trigger, seenAt, tally);
    }
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

  async #fire(trigger: DueTrigger, seenAt: Date, tally: Tally): Promise<void> {
    try {
      for (let times = 0; times < batch; times++) {
        const fired = await this.#options.session.fire(trigger.id, seenAt);
        this.#tell(trigger, fired, tally);
        if (fired?.again !== true) break;
      }
    } catch (error) {
      await this.#fail(trigger, error);
      tally.triggers++;
    }
  }

  #tell({ id, name, tenant }: DueTrigger, fired: Fired | null, tally: Tally): void {
    if (fired === null) return;
    const { events } = this.#options;
    const { jobIds, items, missedFrom } = fired;
    if (items > 0) for (const jobId of jobIds) this.#holding.add(jobId);
    if (jobIds.length > 0) events.emit("trigger.fired", { id, name, tenant, jobIds, items });
    if (missedFrom !== null) events.emit("trigger.missed", { id, name, tenant, from: missedFrom });
    tally.jobs += jobIds.length;
    tally.triggers++;
  }

  /** Kept with the trigger, unless the database does not answer or this process is leader no more. */
  async #fail({ id, name, tenant, ...trigger }: DueTrigger, error: unknown): Promise<void> {
    const { session, events, random } = this.#options;
    if (isNobodysFault(error)) throw error;
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
