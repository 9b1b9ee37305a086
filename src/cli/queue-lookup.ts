import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import { suggest } from "../domain/suggest.ts";
import type { QueueRecord } from "../store/queue-admin.ts";

/** "" as tenant: the queue of this name that all share. */
export async function needQueue(
  { store }: Millrace,
  tenant: string,
  name: string,
): Promise<QueueRecord> {
  const queues = (await store.service.queues.list(null)).filter((one) => one.tenant === tenant);
  const found = queues.find((queue) => queue.name === name);
  if (found !== undefined) return found;
  const meant = suggest(
    name,
    queues.map((queue) => queue.name),
  );
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  throw new MillraceError("QUEUE_NOT_FOUND", `There is no queue "${name}".${hint}`);
}
