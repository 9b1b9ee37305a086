// What a settle does when somebody changes the row that it has found.

import { expect, it } from "vitest";
import { until } from "../support/until.ts";
import { cancelled, type Ending, released, retried, type Topic, withoutPlace } from "./stage.ts";

const endings: Record<string, Ending> = { retried: retried(60_000), released, cancelled };
const rivals = 5;

export const settleRaces: Topic = (stage) => {
  const waiting = async () => {
    const [row] = await stage().sql<{ count: number }>(
      "select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return row?.count ?? 0;
  };

  /** Several change the job one after the other, each as soon as the settle has found what the one before left. */
  async function besideRivals<T>(id: string, settle: () => Promise<T>): Promise<T> {
    const sessions = await Promise.all(Array.from({ length: rivals }, () => stage().session()));
    const change = "update millrace.job set cancel_requested = true where id = $1";
    const [first, ...others] = sessions;
    await first?.query("begin");
    await first?.query(change, [id]);
    let isOver = false;
    const settling = settle().finally(() => {
      isOver = true;
    });
    let before = first;
    for (const session of others) {
      await until("it waits for the row", async () => isOver || (await waiting()) > 0);
      if (isOver) break;
      const seen = await waiting();
      await session.query("begin");
      const changing = session.query(change, [id]);
      await until("the next one waits behind it", async () => (await waiting()) > seen);
      await before?.query("commit");
      await changing;
      before = session;
    }
    await before?.query("commit");
    const settled = await settling;
    for (const session of sessions) await session.close();
    return settled;
  }

  it.each([
    ["by place", false],
    ["by id", true],
  ])("completes a run that somebody changes again and again, found %s", async (_, byId) => {
    const job = await stage().running(await stage().queue());
    const found = byId ? withoutPlace(job) : job;
    expect(await besideRivals(job.id, () => stage().complete([found]))).toBe(1);
    expect(await stage().stateOf(job.id)).toBe("completed");
  });

  it.each(Object.entries(endings))("ends such a run that was %s", async (_, ending) => {
    const job = await stage().running(await stage().queue());
    const settled = await besideRivals(job.id, () => stage().settle(job, ending));
    expect(settled).toBe("cancelled");
    expect(await stage().stateOf(job.id)).toBe("cancelled");
  });
};
