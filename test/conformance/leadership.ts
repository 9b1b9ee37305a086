import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { MillraceError } from "../../src/domain/errors.ts";
import type { LeaderSession } from "../../src/store/store.ts";
import { createGate } from "../support/gate.ts";
import { until } from "../support/until.ts";
import { ids, retried, type Topic } from "./stage.ts";

const hourMs = 3_600_000;

export const leadership: Topic = (stage) => {
  const expire = () =>
    stage().sql("update millrace.leader set expires_at = now() - interval '1 s'");
  const withLeader = async (act: (session: LeaderSession) => Promise<void>) => {
    const session = stage().store.leader();
    await expire();
    try {
      await act(session);
    } finally {
      await session.close();
    }
  };
  const electNew = async (session: LeaderSession) => {
    const term = await session.elect(randomUUID(), hourMs);
    if (term === null) throw new Error("the office is taken");
    return term;
  };
  const refused = async (write: Promise<unknown>) => {
    const error = await write.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(MillraceError);
    expect(error).toMatchObject({ code: "NOT_LEADER" });
  };

  it("gives one candidate the office, under a term larger than all before", () =>
    withLeader(async (session) => {
      const { term: before } = await stage().store.leadership();
      const holder = randomUUID();
      expect(await session.elect(holder, hourMs)).toBe(before + 1);
      expect(await session.elect(randomUUID(), hourMs)).toBeNull();
      const now = await stage().store.leadership();
      expect(now).toMatchObject({ term: before + 1, holder, inOffice: true });
      await expire();
      expect(await stage().store.leadership()).toMatchObject({ inOffice: false });
      expect(await session.elect(randomUUID(), hourMs)).toBe(before + 2);
    }));

  it("gives many candidates at once different terms, and one at a time the office", () =>
    withLeader(async () => {
      const sessions = Array.from({ length: 8 }, () => stage().store.leader());
      const terms: number[] = [];
      for (let round = 0; round < 20; round++) {
        await expire();
        const answers = await Promise.all(sessions.map((one) => one.elect(randomUUID(), hourMs)));
        const elected = answers.filter((term) => term !== null);
        expect(elected).toHaveLength(1);
        terms.push(...elected);
      }
      for (const session of sessions) await session.close();
      expect(terms).toEqual([...new Set(terms)].sort((a, b) => a - b));
    }));

  it("gives a holder who asks again a new term: the first answer may have been lost", () =>
    withLeader(async (session) => {
      const holder = randomUUID();
      const first = await session.elect(holder, hourMs);
      expect(await session.elect(holder, hourMs)).toBe((first ?? 0) + 1);
      expect(await session.renew(first ?? 0, hourMs)).toBe(false);
    }));

  it("renews a term that lasts, and never one that is over, superseded or given back", () =>
    withLeader(async (session) => {
      const term = await electNew(session);
      expect(await session.renew(term, hourMs)).toBe(true);
      expect(await session.renew(term - 1, hourMs)).toBe(false);
      await expire();
      expect(await session.renew(term, hourMs)).toBe(false);
      const next = await electNew(session);
      expect(await session.renew(term, hourMs)).toBe(false);
      await session.resign(next);
      expect(await session.renew(next, hourMs)).toBe(false);
      await electNew(session);
      // A late resignation of an older term changes nothing.
      await session.resign(next);
      expect(await stage().store.leadership()).toMatchObject({ inOffice: true });
    }));

  it("writes under the present term, and refuses a superseded one whole", () =>
    withLeader(async (session) => {
      const mark = `queue-${randomUUID()}`;
      const write = (term: number) =>
        stage().store.asLeader(term, async (tx) => {
          await tx.query("insert into millrace.queue (name) values ($1)", [`${mark}-${term}`]);
          return term;
        });
      const old = await electNew(session);
      expect(await write(old)).toBe(old);
      await expire();
      // Nobody else has been elected: what it writes disturbs nobody.
      expect(await stage().store.asLeader(old, async () => "still")).toBe("still");
      const next = await electNew(session);
      await refused(write(old));
      await refused(write(next + 1));
      expect(await write(next)).toBe(next);
      const rows = await stage().sql<{ name: string }>(
        "select name from millrace.queue where starts_with(name, $1) order by id",
        [mark],
      );
      expect(rows.map(({ name }) => name)).toEqual([`${mark}-${old}`, `${mark}-${next}`]);
    }));

  /** A leader's write that lasts until the gate opens; how it ended. */
  const writeUntil = async (term: number, act: (end: () => void) => Promise<void>) => {
    const [begun, end] = [createGate(), createGate()];
    const written = stage().store.asLeader(term, async (tx) => {
      begun.open();
      await end.opened;
      await tx.query("select 1", []);
    });
    const outcome = written.then(
      () => "written",
      () => "lost",
    );
    await Promise.race([begun.opened, outcome]);
    try {
      await act(end.open);
    } finally {
      end.open();
    }
    return outcome;
  };

  it("elects nobody while a leader's write is under way, but renews", () =>
    withLeader(async (session) => {
      const term = await electNew(session);
      const other = stage().store.leader();
      const outcome = await writeUntil(term, async (end) => {
        expect(await session.renew(term, hourMs)).toBe(true);
        await expire();
        const electing = other.elect(randomUUID(), hourMs);
        await until("the election waits for the write", async () => {
          const [row] = await stage().sql<{ waiting: boolean }>(
            `select exists (select from pg_stat_activity where datname = current_database()
              and wait_event_type = 'Lock' and query like '%leader%') as waiting`,
          );
          return row?.waiting;
        });
        end();
        expect(await electing).toBe(term + 1);
      });
      await other.close();
      expect(outcome).toBe("written");
    }));

  it("ends the transaction of a leader that was stopped in it, so that others can be elected", () =>
    withLeader(async (session) => {
      const term = await electNew(session);
      const outcome = await writeUntil(term, async () => {
        await expire();
        const next = await until("another one is elected", async () => {
          return (await session.elect(randomUUID(), hourMs)) ?? undefined;
        });
        expect(next).toBe(term + 1);
      });
      expect(outcome).toBe("lost");
    }));

  it("refuses every write of an upkeep session whose term is superseded, and nothing happens", () =>
    withLeader(async (session) => {
      const [queueId, leaseId] = [await stage().queue(), await stage().openLease()];
      const delayed = stage().job(queueId, { delayMs: hourMs });
      const late = stage().job(queueId, { expiresInMs: hourMs });
      await stage().put(stage().job(queueId));
      const [held] = await stage().claim(queueId, { leaseId });
      if (held === undefined) throw new Error("nothing was claimed");
      await stage().put(delayed);
      await stage().put(late);
      await stage().endLease(leaseId);
      await stage().sql("update millrace.scheduled_job set due_at = now() where id = $1", [
        delayed.id,
      ]);
      await stage().sql("update millrace.job set expires_at = now() where id = $1", [late.id]);
      const term = await electNew(session);
      const upkeep = stage().store.upkeep(term);
      await expire();
      const next = await electNew(session);
      const settlement = { id: held.id, token: held.token, outcome: retried(), timeline: [] };
      await refused(upkeep.promote(10));
      await refused(upkeep.expire(10, stage().process));
      await refused(upkeep.settleLapsed(leaseId, [settlement], stage().process));
      await refused(upkeep.forgetEnded());
      await refused(upkeep.tidy());
      await refused(upkeep.prune({ auditDays: null }));
      const states = await Promise.all(ids([delayed, late, held]).map((id) => stage().stateOf(id)));
      expect(states).toEqual(["scheduled", "ready", "running"]);
      await upkeep.close();
      const rightful = stage().store.upkeep(next);
      expect((await rightful.promote(10)).promoted).toBe(1);
      expect(await rightful.expire(10, stage().process)).toBe(1);
      const settled = await rightful.settleLapsed(leaseId, [settlement], stage().process);
      expect([...settled]).toEqual([[held.id, "retried"]]);
      expect(await rightful.tidy()).toBe(true);
      await rightful.close();
    }));

  it("tells since when there is a leader, or none", () =>
    withLeader(async (session) => {
      const { upkeep } = stage();
      const term = await electNew(session);
      expect(await upkeep.hasLeader()).toBe(true);
      await stage().sql("update millrace.leader set elected_at = now() - interval '1 min'");
      expect((await upkeep.census()).leaderChangedMs).toBeGreaterThanOrEqual(60_000);
      await session.resign(term);
      expect(await upkeep.hasLeader()).toBe(false);
      expect((await upkeep.census()).leaderChangedMs).toBeLessThan(60_000);
    }));
};
