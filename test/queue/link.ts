// A real queue behind a link that a test can cut. What is asked over a cut link fails, before or after
// the queue did it; over a silent one there is no answer at all.

import { MillraceError } from "../../src/domain/errors.ts";
import type { HealthChecked } from "../../src/queue/health.ts";
import type { Queue } from "../../src/queue/queue.ts";

/** `deaf`: the question is lost. `mute`: the answer is. `silent`: neither fails, nothing comes. */
export type LinkState = "up" | "deaf" | "mute" | "silent";

export interface Link<T> {
  state: LinkState;
  readonly far: Queue<T> & HealthChecked;
}

export function linkTo<T>(queue: Queue<T>): Link<T> {
  const gone = () => new MillraceError("REDIS_UNAVAILABLE");
  const link = { state: "up" as LinkState };
  const over = async <R>(call: () => Promise<R>): Promise<R> => {
    if (link.state === "silent") return new Promise<R>(() => {});
    if (link.state === "deaf") throw gone();
    const answer = await call();
    if (link.state === "mute") throw gone();
    return answer;
  };
  const far: Queue<T> & HealthChecked = {
    ping: () => over(async () => {}),
    enqueue: (job, options) => over(() => queue.enqueue(job, options)),
    enqueueMany: (items) => over(() => queue.enqueueMany(items)),
    dequeue: async (options) => (await far.dequeueMany({ ...options, max: 1 }))[0] ?? null,
    dequeueMany: (options) =>
      over(async () => {
        const items = await queue.dequeueMany(options);
        // A server takes back what it granted to somebody who never heard of it.
        if (link.state === "mute") for (const item of items) await queue.release(item);
        return items;
      }),
    ack: (item) => over(() => queue.ack(item)),
    release: (item, options) => over(() => queue.release(item, options)),
    bury: (item, error) => over(() => queue.bury(item, error)),
    dead: (options) => over(() => queue.dead(options)),
    requeue: (id) => over(() => queue.requeue(id)),
    snapshot: () => over(() => queue.snapshot()),
    purge: () => over(() => queue.purge()),
    shutdown: () => over(() => queue.shutdown()),
  };
  return Object.assign(link, { far });
}
