// A producer's own row counts the lone jobs it stores in one queue in one minute: the row is written by every flush
// anyway. When the minute is over, the sum is moved to where all others are. See docs/design/storage.md.

import type { Clock } from "../../runtime/clock.ts";
import { type Runner, statement } from "./statement.ts";

const minuteMs = 60_000;

/** Said along with the fence. */
export const tallied = (queueId: string) => `, tally_queue_id = ${queueId},
      tally_minute = coalesce(tally_minute, date_trunc('minute', now())), tally_jobs = tally_jobs + 1`;

/** From rows of producers. */
export const addTallies = (from: string) =>
  `insert into millrace.queue_count (queue_id, process, minute, enqueued)
  select tally_queue_id, id, tally_minute, tally_jobs from ${from} where tally_queue_id is not null
  on conflict (queue_id, process, minute) do update set enqueued = queue_count.enqueued + excluded.enqueued`;

const moveTally = statement(
  "move_tally",
  `with over as (
    select id, tally_queue_id, tally_minute, tally_jobs from millrace.producer where id = $1::uuid for update
  ),
  cleared as (
    update millrace.producer p set tally_queue_id = null, tally_minute = null, tally_jobs = 0
    from over where p.id = over.id
  )
  ${addTallies("over")}`,
);

/** What the producer's row counts, as far as its process knows: nobody else begins or adds to it. */
export class Tally {
  readonly #clock: Clock;
  #of: { readonly queueId: number | null; readonly until: number } | null = null;
  #moving = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does it count a job of this queue, or may it begin to? */
  takes(queueId: number): boolean {
    if (this.#of === null) return true;
    return this.#of.queueId === queueId && this.#clock.monotonic() < this.#of.until;
  }

  /** It has counted one, at this time of the server's. */
  took(queueId: number, at: Date): void {
    if (this.#of !== null) return;
    const until = this.#clock.monotonic() + minuteMs - (at.getTime() % minuteMs);
    this.#of = { queueId, until };
  }

  /** Who knows what it counts now: it is moved before it counts on. */
  doubt(): void {
    this.#of = { queueId: null, until: Number.NEGATIVE_INFINITY };
  }

  /** Is there something to move? */
  get isOver(): boolean {
    return this.#of !== null && !this.#moving && this.#clock.monotonic() >= this.#of.until;
  }

  /** Nobody waits for it; what cannot be moved now is moved after a later flush. */
  async move(connection: Runner, producer: string): Promise<void> {
    this.#moving = true;
    const moved = this.#of;
    try {
      await connection.rows(moveTally, [producer]);
      if (this.#of === moved) this.#of = null;
    } catch {
      // Its row still has it, for all who read.
    } finally {
      this.#moving = false;
    }
  }
}
