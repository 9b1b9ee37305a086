// A lone job's flush tells what it did before it commits.

import { expect, it } from "vitest";
import type { Flushed, ImmediateClaim, NewJob } from "../../src/store/store.ts";
import type { Topic } from "./stage.ts";

export const earlyStart: Topic = (stage) => {
  const claimOf = async (queueId: number, claimId: string): Promise<ImmediateClaim> => ({
    ...{ claimId, leaseId: await stage().openLease(), count: 1 },
    ...{ queueIds: [queueId], hints: [{ queueId, weight: 5, afterSeq: 0 }] },
  });

  /** What was told of it, in order. */
  const flush = async (job: NewJob, { early = true } = {}): Promise<unknown[]> => {
    const told: unknown[] = [];
    const claim = await claimOf(job.queueId, job.id);
    const begin = early ? (at: Date) => void told.push(at) : null;
    await new Promise<void>((resolve, reject) => {
      const done = (flushed: Flushed | Promise<Flushed>) => {
        if (flushed instanceof Promise) return reject(new Error("it was lost"));
        told.push(flushed.claimedAt);
        resolve();
      };
      const isSent = stage().ready.flushAtOnce([job], { notice: null, claim }, done, begin);
      if (!isSent) reject(new Error("the session was not ready"));
    });
    return told;
  };

  for (const [kind, options] of [
    ["a job", {}],
    ["a job with more to it", { reference: "r1", maxRuntimeMs: 60_000 }],
  ] as const) {
    it(`tells that ${kind} is claimed, and then that it is stored`, async () => {
      const queueId = await stage().queue();
      await stage().put(stage().job(queueId));
      await stage().complete(await stage().claim(queueId));
      // The first time the statement is new to the connection.
      for (const _ of ["first", "again"]) {
        const job = stage().job(queueId, options);
        const [begun, claimed] = await flush(job);
        expect(begun).toBeInstanceOf(Date);
        expect(claimed).toEqual(begun);
        expect(await stage().stateOf(job.id)).toBe("running");
      }
    });

    it(`tells nothing before ${kind} is stored if it is not claimed, or nobody asks`, async () => {
      const queueId = await stage().queue();
      await stage().put(stage().job(queueId));
      expect(await flush(stage().job(queueId, options))).toEqual([null]);
      await stage().complete(await stage().claim(queueId, { limit: 2 }));
      expect(await flush(stage().job(queueId, options), { early: false })).toEqual([
        expect.any(Date),
      ]);
    });

    it(`stores ${kind} whose run has begun as claimed, whatever is ready before it`, async () => {
      const queueId = await stage().queue();
      await stage().put(stage().job(queueId));
      const queue = (await stage().store.queues()).find(({ id }) => id === queueId);
      await stage().store.pauseQueue("", queue?.name ?? "", true);
      const job = stage().job(queueId, options);
      const claim = { ...(await claimOf(queueId, job.id)), begun: true };
      const flushed = await stage().ready.flush([job], { notice: null, claim });
      expect(flushed.claimedAt).not.toBeNull();
      expect(await stage().stateOf(job.id)).toBe("running");
      const { jobs } = await stage().worker.replay(job.id);
      expect(jobs).toMatchObject([
        { id: job.id, attempt: 1, token: { claimId: job.id, claimNo: 1 } },
      ]);
      expect(await stage().complete(jobs)).toBe(1);
      expect((await stage().store.counts([queueId])).get(queueId)).toMatchObject({
        ...{ enqueued: 2, completed: 1 },
      });
    });
  }
};
