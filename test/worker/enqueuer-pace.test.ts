import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { Enqueuer } from "../../src/client/enqueuer.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { NewJob, ProducerSession } from "../../src/store/store.ts";

const job = (): NewJob => ({
  ...{ id: randomUUID(), type: "work", queueId: 7, tenant: "acme", weight: 5, maxAttempts: 5 },
  payload: "1",
});

/** What happens, in order, when workers elsewhere have to be waited for. */
function watched(waitMs: number) {
  const steps: string[] = [];
  const session: ProducerSession = {
    flush: async (jobs) => {
      steps.push(`flush ${jobs.length}`);
      const answers = jobs.map(({ id }) => ({ id, existing: false }));
      return { answers, claimedAt: null, lastSeq: null, places: null };
    },
    flushAtOnce: () => false,
    notify: async () => {},
    close: async () => {},
  };
  const enqueuer = new Enqueuer({
    ...{ session, keyWaitMs: 1_000, bulkAlone: false },
    clock: { ...systemClock, sleep: async (ms) => void steps.push(`sleep ${ms}`) },
    notices: { ready: () => "", due: () => "", late: () => "" },
    admit: () => new Map(),
    isFree: () => true,
    localWorkers: () => [],
    broker: null,
    offers: {
      waitMs: ({ length }) => (length > 1 ? waitMs : 0),
      find: () => {
        steps.push("find");
        return null;
      },
      stored: () => void steps.push("stored"),
      close: () => {},
    },
    hear: () => {},
  });
  return { enqueuer, steps };
}

test("a flush is held up for workers that have to be waited for, and then looks for one", async () => {
  const { enqueuer, steps } = watched(12);
  await Promise.all([enqueuer.enqueue([job()]), enqueuer.enqueue([job()])]);
  expect(steps).toEqual(["sleep 12", "find", "flush 2", "stored"]);
  steps.length = 0;
  await enqueuer.enqueue([job()]);
  expect(steps).toEqual(["find", "flush 1", "stored"]);
  await enqueuer.close();
});

test("otherwise it is not", async () => {
  const { enqueuer, steps } = watched(0);
  await Promise.all([enqueuer.enqueue([job()]), enqueuer.enqueue([job()])]);
  expect(steps).toEqual(["find", "flush 2", "stored"]);
  await enqueuer.close();
});
