// What every worker process does for the queue's health: while there is no leader it promotes, reclaims,
// tidies, fires triggers and tells webhooks; while there is one it tells it of jobs that fall due.

import { randomUUID } from "node:crypto";
import type { Config } from "../config.ts";
import { createJanitor } from "../manager/janitor.ts";
import { LeaderWatch } from "../manager/leader-watch.ts";
import { createNotifier } from "../manager/notifier.ts";
import { createReclaimer } from "../manager/reclaimer.ts";
import { createScheduler, type Scheduler } from "../manager/scheduler.ts";
import { TriggerRunner } from "../manager/trigger-runner.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Loop, LoopReport } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
import type { Notice, Store, UpkeepSession } from "../store/store.ts";

export interface UpkeepOptions {
  readonly store: Store;
  readonly config: Config;
  readonly hear: (notice: Notice) => void;
  readonly settled: () => number;
  readonly deliver: () => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const announceEveryMs = 50;

export class Upkeep implements Service {
  readonly name = "upkeep";
  readonly #sessions: readonly { close(): Promise<void> }[];
  readonly #scheduler: Scheduler;
  readonly #triggers: TriggerRunner;
  readonly #loops: readonly (Loop | Scheduler | TriggerRunner)[];
  readonly #session: UpkeepSession;
  readonly #watch: LeaderWatch;
  readonly #options: UpkeepOptions;
  #announcing: { delayMs: number } | null = null;
  #starting: Promise<void> | null = null;

  constructor(options: UpkeepOptions) {
    const { store, config, hear, clock, random, events, settled } = options;
    const session = store.upkeep();
    // Vacuuming takes its time; promoting and reclaiming must not wait for it.
    const slow = store.upkeep();
    const triggers = store.triggerSession({ maxAttempts: config.maxAttempts });
    this.#session = session;
    this.#sessions = [session, slow, triggers];
    this.#options = options;
    this.#watch = new LeaderWatch(session, clock);
    const process = randomUUID();
    const shared = { clock, random, events, isWanted: this.#watch.isVacant };
    this.#scheduler = createScheduler({
      ...shared,
      session,
      floorMs: config.pollMs,
      batch: config.promoteBatch,
      onReady: (queueIds) => hear({ kind: "ready", queueIds, late: false }),
    });
    const reclaimer = createReclaimer({
      ...shared,
      session,
      process,
      intervalMs: config.reclaimMs,
      leaseMs: config.leaseMs,
      onReclaimed: () => {
        this.#scheduler.wake();
        hear({ kind: "ready", queueIds: [], late: true });
      },
    });
    const retention = { auditDays: config.auditRetentionDays };
    const janitor = createJanitor({ ...shared, store, session: slow, process, retention, settled });
    this.#triggers = new TriggerRunner({
      ...shared,
      session: triggers,
      intervalMs: config.triggerMs,
    });
    const notifier = createNotifier({
      ...shared,
      ...{ store, session: store.notifier(), intervalMs: config.pollMs, deliver: options.deliver },
      // A leader that is being replaced, or whoever runs notifications, comes first.
      minAgeMs: 2 * config.leaderTtlMs,
    });
    this.#loops = [this.#scheduler, reclaimer, janitor, this.#triggers, notifier];
  }

  get reports(): LoopReport[] {
    return this.#loops.map((loop) => loop.report);
  }

  hear(notice: Notice): void {
    if (notice.kind === "due") this.#scheduler.due(notice.delayMs);
    this.#triggers.hear(notice);
  }

  /** The same for a job of this process, of which nobody else knows yet. */
  delayed(delayMs: number): void {
    this.#watch.isVacant().then(
      (isVacant) => (isVacant ? this.#scheduler.due(delayMs) : this.#announce(delayMs)),
      () => this.#scheduler.wake(),
    );
  }

  /** Jobs that are delayed within a moment are announced together, by the soonest. */
  async #announce(delayMs: number): Promise<void> {
    if (this.#announcing !== null) {
      this.#announcing.delayMs = Math.min(this.#announcing.delayMs, delayMs);
      return;
    }
    const announcement = { delayMs };
    this.#announcing = announcement;
    await this.#options.clock.sleep(announceEveryMs);
    this.#announcing = null;
    // One that is lost is found by the leader's poll.
    await this.#session.announceDue(announcement.delayMs).catch(() => {});
  }

  async start(): Promise<void> {
    this.#starting ??= this.#start();
    await this.#starting;
  }

  async #start(): Promise<void> {
    for (const loop of this.#loops) await loop.start();
  }

  async stop(): Promise<void> {
    await this.#starting;
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    await Promise.all(this.#sessions.map((session) => session.close()));
  }
}
