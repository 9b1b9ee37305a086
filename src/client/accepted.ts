// Tells of what was stored, as far as somebody wants to hear of it.

import { MillraceError } from "../domain/errors.ts";
import type { Events } from "../runtime/events.ts";
import type { Enqueued, NewJob } from "../store/store.ts";

export function acknowledge(
  events: Events,
  made: readonly NewJob[],
  answers: readonly Enqueued[],
  definitionOf: (index: number) => { readonly type: string; readonly queue: string },
): Enqueued[] {
  if (answers.length < made.length) throw new MillraceError("DATABASE_UNAVAILABLE");
  if (events.wants("enqueue.accepted"))
    for (const one of byQueue(made, answers)) events.emit("enqueue.accepted", one);
  if (events.wants("job.enqueued")) {
    for (const [i, { queueId, tenant, correlationId }] of made.entries()) {
      const { type, queue } = definitionOf(i);
      const { id, existing } = answers[i] as Enqueued;
      const about = { id, type, queue, queueId, tenant, correlationId: correlationId ?? id };
      events.emit("job.enqueued", { ...about, existing });
    }
  }
  return answers as Enqueued[];
}

interface Accepted {
  readonly queueId: number;
  jobs: number;
  repeats: number;
}

/** What was stored and what had been stored before, by queue. */
function byQueue(made: readonly NewJob[], answers: readonly Enqueued[]): Iterable<Accepted> {
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
