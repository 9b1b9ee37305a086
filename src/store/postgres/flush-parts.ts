// What every flush has: its number, its counts, its parameters.

import type { NewJob } from "../store.ts";
import { newJobParameters } from "./job-columns.ts";

/** What is asked and set along with it costs less than a part of its own. */
export const fenceAnd = (asked: string, set = "") => `fence as (
    update millrace.producer set flush_no = $1::text::bigint, seen_at = now()${set}
    where id = $2::text::uuid and flush_no = $1::text::bigint - 1
    returning nextval('millrace.flush_seq') * 1024 as base${asked}
  )`;

export const fence = fenceAnd("");

/** The oldest job that is ready before a fresh one. */
export const olderOf = (columns: string, queueId: string, weight: string, afterSeq: string) =>
  `select ${columns} from millrace.job j
      where j.queue_id = ${queueId} and j.weight = ${weight} and j.tenant_slot = 0 and j.lane = 0
        and j.seq > ${afterSeq} and j.claim_id is null
      order by j.seq limit 1`;

export const isOpen = (queueId: string) => `(
      select q.paused_at is null and q.is_active from millrace.queue q where q.id = ${queueId}
    )`;

/** May a fresh job be claimed at once? Not if an older one is ready, nor if its queue rests. */
export const clearOf = (queueId: string, weight: string, afterSeq: string) => `not exists (
      ${olderOf("", queueId, weight, afterSeq)}
    ) and ${isOpen(queueId)}`;

export const countEnqueued = (queueIds: string) =>
  `insert into millrace.queue_count (queue_id, process, minute, enqueued)
    select queue_id, $2::text::uuid, date_trunc('minute', now()), count(*)
    from fence, ${queueIds} queue_id group by queue_id
    on conflict (queue_id, process, minute) do update
      set enqueued = queue_count.enqueued + excluded.enqueued`;

export const countAlike = (queueId: string, jobs: string) =>
  `insert into millrace.queue_count (queue_id, process, minute, enqueued)
    select ${queueId}, $2::text::uuid, date_trunc('minute', now()), ${jobs} from fence
    on conflict (queue_id, process, minute) do update
      set enqueued = queue_count.enqueued + excluded.enqueued`;

/** A number is read sooner than a time is. */
export const flushedMs = "date_part('epoch', now()) * 1000";

/** To the millisecond, as times are read: its fraction has three digits, and what was lost to the number's own form. */
export const flushedAtOf = (ms: number): Date => new Date(Math.floor(ms + 0.0005));

export interface Flush {
  readonly producer: string;
  readonly flushNo: number;
  readonly channel: string;
  /** What to tell listeners with the commit; null: nothing. */
  readonly notice: string | null;
  readonly jobs: readonly NewJob[];
}

export const parameters = (flush: Flush) => [
  String(flush.flushNo),
  flush.producer,
  ...newJobParameters(flush.jobs),
  flush.channel,
  flush.notice,
];
