// What every flush has: its number, its counts, its parameters.

import type { NewJob } from "../store.ts";
import { newJobParameters } from "./job-columns.ts";

export const fence = `fence as (
    update millrace.producer set flush_no = $1::text::bigint, seen_at = now()
    where id = $2::text::uuid and flush_no = $1::text::bigint - 1
    returning nextval('millrace.flush_seq') * 1024 as base
  )`;

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
