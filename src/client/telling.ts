import { MillraceError } from "../domain/errors.ts";
import type { Events } from "../runtime/events.ts";
import type { TraceContext, Tracing } from "../runtime/tracing.ts";

interface Listeners {
  readonly events: Events;
  readonly tracing: Tracing | null;
}

/** Does anybody want to hear of enqueues? */
export const isTold = ({ events, tracing }: Listeners): boolean =>
  tracing !== null || events.wants("enqueue.refused");

/** Traces and refusals are for whoever wants them; without such a one this costs nothing. */
export function telling<T>(
  { events, tracing }: Listeners,
  definition: { readonly type: string; readonly queue: string } | undefined,
  jobs: number,
  enqueue: (carried: TraceContext | undefined) => Promise<T>,
): Promise<T> {
  const { type, queue } = definition ?? {};
  const isJob = typeof type === "string" && typeof queue === "string";
  const answer =
    tracing === null || !isJob
      ? enqueue(undefined)
      : tracing.enqueue({ type, queue, jobs }, enqueue);
  if (!events.wants("enqueue.refused")) return answer;
  return answer.catch((error) => {
    if (error instanceof MillraceError && isJob)
      events.emit("enqueue.refused", { type, queue, code: error.code });
    throw error;
  });
}
