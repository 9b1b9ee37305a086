// No plan may collapse: with another queue's rows in front, statistics that are missing or from when the
// table was empty, and an old snapshot that keeps every dead entry, each hot statement still goes by
// index or by row address and looks at few rows.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import { handedClaim, replayClaim } from "../../src/store/postgres/claim.ts";
import { enqueueJobs } from "../../src/store/postgres/enqueue.ts";
import {
  claiming,
  flushedAndClaimed,
  flushJobs,
  handing,
  registerProducer,
} from "../../src/store/postgres/flush.ts";
import { findLapsed } from "../../src/store/postgres/lapsed.ts";
import { renewLease } from "../../src/store/postgres/lease.ts";
import { LongPayloadReader } from "../../src/store/postgres/long-payload-reader.ts";
import { expireDue, promoteDue } from "../../src/store/postgres/promote.ts";
import { settleJobs, settleLapsedJobs } from "../../src/store/postgres/settle.ts";
import { takeTurn } from "../../src/store/postgres/turn.ts";
import type { ClaimHint, Listener, NewJob } from "../../src/store/store.ts";
import { type ExplainedPlan, Explainer } from "../support/explain.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import {
  type Claim,
  type Completable,
  completionOf,
  dead,
  released,
  retried,
  Stage,
  snoozed,
  toSettlement,
  withoutPlace,
} from "./stage.ts";

export interface PlanOptions {
  /** How many rows of another queue lie in front, ready and scheduled each. */
  readonly rows: number;
  readonly statistics: "none" | "of the empty table" | "of a time when all rows were ours";
}

const planCacheModes = ["auto", "force_generic_plan", "force_custom_plan"];

const batch = 20;
const longPayload = JSON.stringify("a longer text ".repeat(60));
/** Per statement of one batch: some rows are looked at more than once, and no more than that. */
const mostRows = 12 * batch;
const mostBuffers = 100 * batch;
const direct = ["Index Scan", "Index Only Scan", "Tid Scan", "Tid Range Scan"];

export function planTests({ rows, statistics }: PlanOptions): void {
  describe(`${rows} rows in front, statistics: ${statistics}`, () => {
    let opened: TestStore;
    let stage: Stage;
    let queueId: number;
    let listener: Listener;

    beforeAll(async () => {
      opened = await openTestStore();
      stage = new Stage(opened);
      listener = await stage.store.listen(() => {});
      for (const table of ["job", "scheduled_job", "claim", "lease", "queue", "producer"])
        await stage.sql(`alter table millrace.${table} set (autovacuum_enabled = false)`);
      const crowd = await stage.queue();
      queueId = await stage.queue();
      if (statistics === "of the empty table") await stage.sql("analyze");
      await fill(statistics === "of a time when all rows were ours" ? queueId : crowd);
      if (statistics === "of a time when all rows were ours") {
        await stage.sql("analyze");
        for (const table of ["job", "scheduled_job"]) {
          await stage.sql(`update millrace.${table} set queue_id = $1`, [crowd]);
          await stage.sql(`vacuum millrace.${table}`);
        }
      }
    }, 600_000);
    afterAll(async () => {
      await listener?.close();
      await stage?.close();
    });

    async function fill(owner: number) {
      const columns = "id, created_at, queue_id, weight, max_attempts, type, tenant, payload";
      const values = `gen_random_uuid(), now(), ${owner}, 5, 5, 'crowd', 'other', '{}'`;
      await stage.sql(
        `insert into millrace.job (${columns}, seq, ready_at)
        select ${values}, n, now() from generate_series(1, ${rows}) n`,
      );
      await stage.sql(
        `insert into millrace.scheduled_job (${columns}, due_at)
        select ${values}, now() + interval '1 day' + n * interval '1 s' from generate_series(1, ${rows}) n`,
      );
      await stage.sql(`select setval('millrace.flush_seq', ${rows})`);
    }

    const turn = (
      claim: Parameters<typeof takeTurn>[1]["claim"],
      done: readonly Completable[] = [],
      result: string | undefined = '{"ok":true}',
    ) => ({
      worker: "w",
      process: stage.process,
      completions: done.map((job) => completionOf(job, result)),
      finishedClaims: [...new Set(done.map(({ token }) => token.claimId))],
      claim,
    });
    const hintsFor = (afterSeq: number): ClaimHint[] => [{ queueId, weight: 5, afterSeq }];

    /** A batch through every hot statement once; answers the plans by name. */
    async function round(explainer: Explainer): Promise<Record<string, ExplainedPlan[]>> {
      const plans: Record<string, ExplainedPlan[]> = {};
      const explain = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
        let value: T | undefined;
        plans[name] = await explainer.explain(async () => {
          value = await act();
        });
        return value as T;
      };
      const { connection } = explainer;
      const producer = randomUUID();
      await registerProducer(connection, producer);
      const request = (flushNo: number, jobs: NewJob[]) => ({
        ...{ producer, flushNo, channel: "c", notice: null, jobs },
      });
      const options = { placing: "silent", payloadsApart: true } as const;
      const flush = (flushNo: number) =>
        flushJobs(connection, request(flushNo, stage.jobs(queueId, batch)), options);
      const leaseId = await stage.openLease();
      const ask = (hints: ClaimHint[] | null) =>
        stage.request(queueId, { leaseId, limit: batch, hints, claimId: uuidv7() });
      const claimBy = async (name: string, hints: ClaimHint[] | null, done: Claim[] = []) => {
        const claim = await ask(hints);
        const turned = await explain(name, () => takeTurn(connection, turn(claim, done)));
        expect(turned.jobs).toHaveLength(batch);
        return [...turned.jobs];
      };
      for (const n of [1, 2, 3, 4]) await explain("flush", () => flush(n));
      let held = await claimBy("turn by scan", null);
      const lastSeq = () => held.at(-1)?.seq ?? 0;
      await explain("replay", () => replayClaim(connection, held[0]?.token.claimId ?? ""));
      held = await claimBy("turn by hint", hintsFor(lastSeq()), held);
      await explain("completions by id", () =>
        takeTurn(connection, turn(null, held.slice(0, batch / 2).map(withoutPlace))),
      );
      await explain("completions by place", () =>
        takeTurn(connection, turn(null, held.slice(batch / 2), undefined)),
      );
      held = await claimBy("turn by hint", hintsFor(lastSeq()));
      const outcomes = [retried(), snoozed(), released, dead];
      const settlements = held.map((job, i) => toSettlement(job, outcomes[i % 4] ?? dead));
      await explain("settle", () =>
        settleJobs(connection, settlements, { worker: "w", process: stage.process }),
      );
      await explain("promote", () => promoteDue(connection, batch));
      await explain("expire", () => expireDue(connection, batch, stage.process));
      held = await claimBy("turn by scan", null);
      const claimedTo = lastSeq();
      await explain("renew", () => renewLease(connection, leaseId, 60_000, [uuidv7()]));
      await stage.endLease(leaseId);
      await explain("find lapsed", () => findLapsed(connection));
      const lapsed = held.map((job) => toSettlement(job, retried(86_400_000)));
      await explain("reclaim", () =>
        settleLapsedJobs(connection, leaseId, lapsed, { worker: "r", process: stage.process }),
      );
      const named = stage.jobs(queueId, batch).map((job) => ({ ...job, key: randomUUID() }));
      await explain("named flush", () =>
        enqueueJobs((source, values) => connection.query(source, values), request(5, named)),
      );
      await drainQueue();
      const send = async ({ source, values }: ReturnType<typeof claiming>) =>
        flushedAndClaimed(await connection.rows(source, values));
      const fresh = stage.jobs(queueId, 1);
      const claim = {
        claimId: fresh[0]?.id ?? "",
        leaseId,
        count: 1,
        hints: hintsFor(0),
        queueIds: [queueId],
      };
      await explain("flush and claim", () => send(claiming(request(6, fresh), claim, true)));
      await drainQueue();
      const offer = {
        leaseId: await stage.openLease(),
        offerId: uuidv7(),
        leaseLeftMs: 1_000,
        channel: "handed",
        ...{ atOnce: 100, most: 200 },
      };
      const handover = { ...offer, claimId: uuidv7(), afterSeq: claimedTo, texts: [""] };
      const ways = { tally: false, payloadsApart: true };
      const jobs = stage.jobs(queueId, 1);
      await stage.lease.offer({ ...offer, queueIds: [queueId], types: null, hints: [] });
      await listener.stand(offer.leaseId, offer.channel);
      const handed = await explain("flush and hand", () =>
        send(handing(request(7, jobs), handover, ways)),
      );
      expect(handed.claimedAt).not.toBeNull();
      const more = { ...handover, claimId: uuidv7() };
      const handedMore = await explain("flush and hand several", () =>
        send(handing(request(8, stage.jobs(queueId, batch)), more, ways)),
      );
      expect(handedMore.claimedAt).not.toBeNull();
      const long = stage.jobs(queueId, batch).map((job) => ({ ...job, payload: longPayload }));
      const handedLong = await explain("flush and hand several long ones", () =>
        send(handing(request(9, long), { ...handover, claimId: uuidv7(), most: 1_000 }, ways)),
      );
      expect(handedLong.claimedAt).not.toBeNull();
      const ids = long.map(({ id }) => id);
      const reader = new LongPayloadReader(connection);
      for (const way of ["by their ids", "between the first and the last"]) {
        const read = await explain(`long payloads ${way}`, () => reader.read(ids));
        expect(read).toHaveLength(batch);
      }
      await explain("handed several", () => handedClaim(connection, { ...more, jobId: null }));
      await explain("handed", () =>
        handedClaim(connection, { ...handover, jobId: jobs[0]?.id ?? "" }),
      );
      await drainQueue();
      return plans;
    }

    async function drainQueue() {
      for (;;) {
        const jobs = await stage.claim(queueId, { limit: 1_000 });
        if (jobs.length === 0) break;
        await stage.complete(jobs);
      }
      await stage.sql("delete from millrace.job where queue_id = $1", [queueId]);
      await stage.sql("delete from millrace.claim");
      await stage.sql("delete from millrace.lease");
    }

    function check(plans: Record<string, ExplainedPlan[]>) {
      for (const [name, list] of Object.entries(plans)) {
        expect(list.length, name).toBeGreaterThan(0);
        for (const plan of list) {
          const story = `${name}\n${plan.text}\n${plan}`;
          for (const table of ["job", "scheduled_job", "long_payload"]) {
            const visits = plan.visits(table);
            for (const { node } of visits) expect(direct, story).toContain(node);
            expect(plan.wholesaleJoins(table), story).toEqual([]);
            const seen = visits.reduce((sum, visit) => sum + visit.rows, 0);
            expect(seen, story).toBeLessThanOrEqual(mostRows);
          }
          expect(plan.buffers, story).toBeLessThanOrEqual(mostBuffers);
        }
      }
    }

    async function inEachMode(act: (explainer: Explainer) => Promise<void>) {
      for (const mode of planCacheModes) {
        const explainer = new Explainer(opened.url, mode);
        // Often enough for "auto" to have settled on a plan.
        for (let i = 0; i < 7; i++) await round(explainer);
        await act(explainer);
        await explainer.close();
      }
    }

    it("goes by index and looks at few rows in every hot statement", async () => {
      await inEachMode(async (explainer) => check(await round(explainer)));
    }, 600_000);

    it("does so with an old snapshot held and many dead entries in front", async () => {
      const snapshot = await stage.session();
      await snapshot.query("begin isolation level repeatable read");
      await snapshot.query("select count(*) from millrace.queue");
      for (let i = 0; i < 10; i++) {
        await stage.put(...stage.jobs(queueId, 1_000));
        await drainQueue();
      }
      await inEachMode(async (explainer) => {
        const plans = await round(explainer);
        // A scan has to pass what the snapshot keeps; that is what hints are for.
        const { "turn by scan": _, "flush and claim": __, ...hinted } = plans;
        check(hinted);
      });
      await snapshot.query("rollback");
      await snapshot.close();
    }, 600_000);
  });
}
