import { MillraceError } from "../../domain/errors.ts";
import type { Job } from "../../domain/job.ts";
import type { DeadLetterQuery } from "../../store/dead-letter.ts";
import * as contract from "../contract/dead-letters.ts";
import { type Identity, maySee, tenantToRead } from "../identity.ts";
import { instantShape, readCursor, uuidShape, writeCursor } from "../input.ts";
import { type Call, type Served, type Service, serve } from "../served.ts";
import { jobView, letterView } from "../views.ts";

function toQuery(filter: contract.DeadLetterQueryInput, identity: Identity): DeadLetterQuery {
  return {
    tenant: tenantToRead(identity, filter.tenant_id),
    status: filter.status,
    queueId: filter.queue_id,
    type: filter.job_type,
    category: filter.category,
    fingerprint: filter.error_fingerprint,
    errorClass: filter.error_class,
    from: filter.created_from === undefined ? undefined : new Date(filter.created_from),
    to: filter.created_to === undefined ? undefined : new Date(filter.created_to),
  };
}

const list = serve(contract.listDeadLetters, async ({ query, identity }, { store }) => {
  const { deadLetters } = store.service.readsOf(identity.tenant);
  const wanted = toQuery(query, identity);
  const [diedAt, id] = readCursor("dlq", [instantShape, uuidShape], query.cursor) ?? [];
  const before = diedAt === undefined || id === undefined ? null : { diedAt, id };
  const [page, count] = await Promise.all([
    deadLetters.list(wanted, before, query.limit),
    deadLetters.count(wanted),
  ]);
  const { next } = page;
  return {
    status: 200 as const,
    body: {
      dlq_items: page.letters.map(letterView),
      total_count: count,
      next_cursor: next === null ? null : writeCursor("dlq", next.diedAt, next.id),
    },
  };
});

async function findLetter(id: string, identity: Identity, { store }: Service): Promise<Job> {
  const [job] = await store.service.readsOf(identity.tenant).find([id]);
  const isLetter = job?.state === "dead" || job?.state === "discarded";
  if (job === undefined || !isLetter || !maySee(identity, job.tenant))
    throw new MillraceError("DEAD_LETTER_NOT_FOUND");
  return job;
}

const read = serve(contract.readDeadLetter, async ({ params, identity }, service) => {
  const job = await findLetter(params.id, identity, service);
  await service.store.service.audit.add({
    tenant: job.tenant,
    actor: identity.actor,
    action: "job_dlq_read",
    target: job.id,
  });
  return { status: 200 as const, body: jobView(job, true) };
});

async function reprocess(id: string, notes: string, identity: Identity, service: Service) {
  const made = await service.millrace.reprocess(id, notes, identity.actor);
  service.taker.wake([]);
  return {
    message: "The job runs again as a new one.",
    dlq_id: id,
    new_job_id: made.id,
    new_idempotency_key: made.idempotencyKey,
  };
}

type Many = Call<typeof contract.reprocessDeadLetters | typeof contract.discardDeadLetters>["body"];

/** The ids of all that match and wait for review, if they are as many as was confirmed. */
async function confirmed(body: Many, identity: Identity, { store }: Service): Promise<string[]> {
  const { deadLetters } = store.service.readsOf(identity.tenant);
  const wanted = { ...toQuery(body.filter, identity), status: "pending_review" as const };
  const count = await deadLetters.count(wanted);
  if (count !== body.confirm_count)
    throw new MillraceError("COUNT_MISMATCH", `${count} dead letters match.`, {
      details: { count },
    });
  return (await deadLetters.list(wanted, null, Math.max(1, count))).letters.map(({ id }) => id);
}

/**
 * Somebody else may have dealt with one meanwhile: that one is left to them. Those whose queue accepts
 * nothing stay as they are; where that is all of them, it is said.
 */
async function each<T>(ids: readonly string[], repair: (id: string) => Promise<T>): Promise<T[]> {
  const done: T[] = [];
  let inactive: MillraceError | null = null;
  for (const id of ids) {
    try {
      done.push(await repair(id));
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      if (error.code === "QUEUE_INACTIVE") inactive = error;
      else if (error.code !== "ILLEGAL_TRANSITION") throw error;
    }
  }
  if (done.length === 0 && inactive !== null) throw inactive;
  return done;
}

const statistics = serve(
  contract.readDeadLetterStatistics,
  async ({ query, identity }, service) => {
    const tenant = tenantToRead(identity, query.tenant_id);
    const found = await service.store.service
      .readsOf(identity.tenant)
      .deadLetters.statistics(tenant);
    return {
      status: 200 as const,
      body: {
        by_status: found.byStatus,
        by_error_class: found.byErrorClass,
        by_category: found.byCategory,
        by_queue: found.byQueue,
        top_fingerprints: found.fingerprints.map(({ fingerprint, count, message, lastAt }) => ({
          error_fingerprint: fingerprint,
          count,
          error_message: message,
          last_at: lastAt.toISOString(),
        })),
        oldest_pending_seconds: found.oldestPendingSeconds,
        last_day: found.lastDay,
      },
    };
  },
);

export const deadLetterRoutes: readonly Served[] = [
  list,
  read,
  serve(contract.reprocessDeadLetter, async ({ params, body, identity }, service) => {
    const { id } = await findLetter(params.id, identity, service);
    return { status: 201 as const, body: await reprocess(id, body.notes, identity, service) };
  }),
  serve(contract.discardDeadLetter, async ({ params, body, identity }, service) => {
    const { id } = await findLetter(params.id, identity, service);
    await service.millrace.discard(id, body.notes, identity.actor);
    return { status: 200 as const, body: { message: "The dead letter is closed.", dlq_id: id } };
  }),
  serve(contract.reprocessDeadLetters, async ({ body, identity }, service) => {
    const ids = await confirmed(body, identity, service);
    const reprocessed = await each(ids, (id) => reprocess(id, body.notes, identity, service));
    return { status: 200 as const, body: { reprocessed } };
  }),
  serve(contract.discardDeadLetters, async ({ body, identity }, service) => {
    const ids = await confirmed(body, identity, service);
    const discarded = await each(ids, async (id) => {
      await service.millrace.discard(id, body.notes, identity.actor);
      return id;
    });
    return { status: 200 as const, body: { discarded } };
  }),
  statistics,
];
