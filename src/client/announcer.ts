// Who is told of what was stored: workers here at once, those elsewhere by notices.

import type { Clock } from "../runtime/clock.ts";
import type { NewJob, Notice, NoticeTexts, ProducerSession } from "../store/store.ts";

export interface AnnouncerOptions {
  readonly session: Pick<ProducerSession, "notify">;
  readonly clock: Clock;
  readonly notices: NoticeTexts;
  readonly hear: (notice: Notice) => void;
}

const noticeEveryMs = 20;
const smallFlush = 8;
const slowFlushMs = 80;

export class Announcer {
  readonly #options: AnnouncerOptions;
  #noticeAt = 0;
  readonly #owed = new Set<number>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /**
   * What goes with a flush. A small flush is somebody waiting for a pickup: its notice rides with the commit. Under
   * load one notice in a while does, and the rest are sent together soon after. Where a handover is tried, the notice
   * goes out only if it fails.
   */
  noticeOf(jobs: readonly NewJob[], now: number, tried: boolean): string | null {
    const { notices } = this.#options;
    const [first] = jobs;
    if (first !== undefined && jobs.length === 1 && first.delayMs === undefined) {
      if (!tried) this.#noticeAt = now;
      return notices.ready([first.queueId]);
    }
    const ready = readyQueues(jobs);
    if (ready.size === 0) return notices.due(shortestDelay(jobs));
    if (!tried && jobs.length > smallFlush && now - this.#noticeAt < noticeEveryMs) {
      for (const id of ready) this.#owed.add(id);
      this.#timer ??= setTimeout(() => void this.#sendOwed(), noticeEveryMs);
      return null;
    }
    if (!tried) this.#noticeAt = now;
    return notices.ready(ready);
  }

  /** They were stored, and so many of them claimed on the way, by a flush that began then. */
  stored(jobs: readonly NewJob[], claimed: number, startedAt: number): void {
    const { hear, notices, session, clock } = this.#options;
    const ready = readyQueues(jobs);
    const late = clock.monotonic() - startedAt > slowFlushMs;
    if (ready.size > 0 && claimed < jobs.length)
      hear({ kind: "ready", queueIds: [...ready], late });
    if (late && ready.size > 0) void session.notify(notices.late(ready)).catch(() => {});
    const delayMs = shortestDelay(jobs);
    if (delayMs === Number.POSITIVE_INFINITY) return;
    hear({ kind: "due", delayMs });
    if (ready.size > 0) void session.notify(notices.due(delayMs)).catch(() => {});
  }

  async ready(queueIds: Iterable<number>): Promise<void> {
    const { session, notices } = this.#options;
    // A lost wake-up costs latency only.
    await session.notify(notices.ready(queueIds)).catch(() => {});
  }

  async #sendOwed(): Promise<void> {
    this.#timer = null;
    const ids = [...this.#owed];
    this.#owed.clear();
    if (ids.length > 0) await this.ready(ids);
  }

  /** What is owed is sent. */
  async close(): Promise<void> {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    await this.#sendOwed();
  }
}

export function readyQueues(jobs: readonly NewJob[]): Set<number> {
  const ids = new Set<number>();
  for (const job of jobs) if (job.delayMs === undefined) ids.add(job.queueId);
  return ids;
}

function shortestDelay(jobs: readonly NewJob[]): number {
  let shortest = Number.POSITIVE_INFINITY;
  for (const job of jobs) if (job.delayMs !== undefined) shortest = Math.min(shortest, job.delayMs);
  return shortest;
}
