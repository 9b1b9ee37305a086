import { randomBytes, randomUUID } from "node:crypto";
import { beforeEach, expect, it } from "vitest";
import { planDeliveries } from "../../src/manager/notifier.ts";
import { dead, type Topic } from "./stage.ts";

export const notifier: Topic = (stage) => {
  const notifier = () => stage().store.notifier();
  const create = () =>
    stage().store.webhooks.create(
      {
        ...{ id: randomUUID(), tenant: null, name: "ours", url: "https://example.com/" },
        ...{ kinds: ["job.dead"], queues: null, signingKey: randomBytes(32) },
      },
      { actor: "operator" },
    );
  const die = async () => stage().settle(await stage().running(await stage().queue()), dead);
  const dispatch = async (minAgeMs: number) => {
    const queueId = await stage().queue();
    const plan = planDeliveries({ queueId, maxAttempts: 3 });
    return notifier().dispatch({ limit: 10, queueId, plan, minAgeMs });
  };
  const raised = () => stage().sql("select from millrace.notification");

  beforeEach(async () => {
    await stage().sql("delete from millrace.webhook");
    await stage().sql("delete from millrace.notification");
  });

  it("leaves what is younger than it was asked for to others", async () => {
    await create();
    await die();
    const queue = "deliveries of nobody";
    expect(await notifier().outlook(queue, 60_000)).toMatchObject({ notifications: false });
    expect((await dispatch(60_000)).notifications).toEqual([]);
    await stage().sql("update millrace.notification set at = at - interval '1 hour'");
    expect(await notifier().outlook(queue, 60_000)).toMatchObject({ notifications: true });
    expect((await dispatch(60_000)).notifications).toHaveLength(1);
  });

  it("sees deliveries that nobody has taken", async () => {
    const queueId = await stage().queue();
    const [row] = await stage().sql<{ name: string }>(
      "select name from millrace.queue where id = $1",
      [queueId],
    );
    const waiting = async (ageMs: number) =>
      (await notifier().outlook(row?.name ?? "", ageMs)).deliveries;
    expect(await waiting(0)).toBe(false);
    await stage().put(stage().job(queueId));
    expect(await waiting(0)).toBe(true);
    expect(await waiting(3_600_000)).toBe(false);
    await stage().claim(queueId);
    expect(await waiting(0)).toBe(false);
  });

  it("writes nothing under a term that is over", async () => {
    await create();
    await die();
    const fenced = stage().store.notifier(4_711);
    const over = { code: "NOT_LEADER" };
    const options = { limit: 10, queueId: await stage().queue(), minAgeMs: 0, plan: () => [] };
    await expect(fenced.dispatch(options)).rejects.toMatchObject(over);
    await expect(fenced.raiseDepths()).rejects.toMatchObject(over);
    expect(await fenced.outlook("none", 0)).toMatchObject({ notifications: true });
    expect(await raised()).toHaveLength(1);
    await fenced.close();
  });

  it("gives the turn at a failing receiver to one delivery at a time, after its wait", async () => {
    const { id } = await create();
    const turns = () =>
      Promise.all(Array.from({ length: 4 }, () => stage().store.webhooks.takeTurn(id, 60_000)));
    await stage().store.webhooks.noteFailed(id, {
      error: "no",
      failingAfter: 3,
      waitMs: 3_600_000,
    });
    for (const waitMs of await turns()) expect(waitMs).toBeGreaterThan(60_000);
    const over = "update millrace.webhook set retry_at = now() - interval '1 second'";
    await stage().sql(over);
    expect((await turns()).filter((waitMs) => waitMs === 0)).toHaveLength(1);
    expect((await turns()).filter((waitMs) => waitMs === 0)).toHaveLength(0);
    await stage().store.webhooks.noteDelivered(id);
    expect((await turns()).filter((waitMs) => waitMs === 0)).toHaveLength(1);
    expect(await stage().store.webhooks.takeTurn(randomUUID(), 1)).toBe(0);
  });
};
