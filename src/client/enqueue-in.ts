// Jobs that belong to the caller's own transaction: they are there if it commits.

import type { Enqueued, NewJob, Store, Transaction } from "../store/store.ts";
import { answersOrThrow, type Capacity } from "./capacity.ts";

const mostPerStatement = 1_000;

/** All of them or none, even when the caller catches the refusal and commits. */
export async function enqueueIn(
  tx: Transaction,
  jobs: readonly NewJob[],
  { store, capacity }: { readonly store: Store; readonly capacity: Capacity },
): Promise<Enqueued[]> {
  const refused = await capacity.refusals([{ jobs }]);
  for (const refusal of refused.values()) return answersOrThrow(refusal);
  const send = () => sendInBatches(tx, jobs, store);
  return jobs.length > 1 && jobs.some(isNamed) ? undoneOnRefusal(tx, send) : send();
}

/** Only what has a name of its own can be refused by the statement itself. */
const isNamed = (job: NewJob) => job.key !== undefined || job.uniqueReference === true;

async function undoneOnRefusal<T>(tx: Transaction, send: () => Promise<T>): Promise<T> {
  await tx.query("savepoint millrace_enqueue", []);
  try {
    const answers = await send();
    await tx.query("release savepoint millrace_enqueue", []);
    return answers;
  } catch (error) {
    await tx.query("rollback to savepoint millrace_enqueue", []);
    throw error;
  }
}

async function sendInBatches(
  tx: Transaction,
  jobs: readonly NewJob[],
  store: Store,
): Promise<Enqueued[]> {
  const enqueued: Enqueued[] = [];
  // One after the other: a transaction has one connection.
  for (let from = 0; from < jobs.length; from += mostPerStatement) {
    const batch = jobs.slice(from, from + mostPerStatement);
    for (const answer of await store.enqueueIn(tx, batch, noticeFor(batch, store))) {
      if (answer instanceof Error) throw answer;
      enqueued.push(answer);
    }
  }
  return enqueued;
}

function noticeFor(jobs: readonly NewJob[], { notices }: Store): string {
  const ready = new Set(jobs.filter((job) => job.delayMs === undefined).map((job) => job.queueId));
  const delays = jobs.flatMap((job) => job.delayMs ?? []);
  return ready.size > 0 ? notices.late(ready) : notices.due(Math.min(...delays));
}
