import type { Enqueued, NewJob } from "../store/store.ts";

interface Accepted {
  readonly queueId: number;
  jobs: number;
  repeats: number;
}

/** What was stored and what had been stored before, by queue. */
export function byQueue(made: readonly NewJob[], answers: readonly Enqueued[]): Iterable<Accepted> {
  const queues = new Map<number, Accepted>();
  let last: Accepted | undefined;
  for (let i = 0; i < made.length; i++) {
    const { queueId } = made[i] as NewJob;
    if (last?.queueId !== queueId) {
      last = queues.get(queueId) ?? { queueId, jobs: 0, repeats: 0 };
      queues.set(queueId, last);
    }
    if (answers[i]?.existing === true) last.repeats++;
    else last.jobs++;
  }
  return queues.values();
}
