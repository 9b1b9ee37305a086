import { randomBytes, randomUUID } from "node:crypto";
import { beforeEach, expect, it } from "vitest";
import { NonRetryableError } from "../../src/domain/error-class.ts";
import type { Notification } from "../../src/domain/notification.ts";
import { planDeliveries } from "../../src/manager/notifier.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { NewWebhook } from "../../src/store/webhook.ts";
import { cancelled, dead, retried, type Topic } from "./stage.ts";
import { itemRunner, settleItem } from "./trigger-stage.ts";

const by = { actor: "operator" };
const failed = (failingAfter: number) => ({ error: "no", failingAfter, waitMs: 0 });

export const webhooks: Topic = (stage) => {
  const store = () => stage().store.webhooks;
  const notifier = () => stage().store.notifier();
  const newWebhook = (options: Partial<NewWebhook> = {}): NewWebhook => ({
    ...{ id: uuidv7(), tenant: null, name: "ours", url: "https://example.com/" },
    ...{ kinds: ["job.dead", "queue.deep"], queues: null, signingKey: randomBytes(32) },
    ...options,
  });
  const create = (options: Partial<NewWebhook> = {}) => store().create(newWebhook(options), by);
  const raised = () =>
    stage().sql<Record<string, unknown> & { data: Record<string, unknown> }>(
      "select * from millrace.notification order by id",
    );
  const die = async (options: Parameters<ReturnType<typeof stage>["job"]>[1] = {}) => {
    const job = await stage().running(await stage().queue(), options);
    await stage().settle(job, dead);
    return job.id;
  };
  const dispatch = async (limit = 100) => {
    const queueId = await stage().queue();
    const plan = planDeliveries({ queueId, maxAttempts: 3 });
    return notifier().dispatch({ limit, queueId, plan, minAgeMs: 0 });
  };

  beforeEach(async () => {
    await stage().sql("delete from millrace.webhook");
    await stage().sql("delete from millrace.notification");
    await stage().sql("delete from millrace.deep_queue");
  });

  it("raises one for an item that dies by itself, and one for each that dies with its job", async () => {
    await create();
    const session = stage().store.triggerSession({ maxAttempts: 1 });
    const { job, jobId, items } = await itemRunner(stage(), session, 3);
    const [hopeless = ""] = items;
    const never = { kind: "failed", error: new NonRetryableError("never") } as const;
    expect(await settleItem(stage(), job, hopeless, never)).toBe("dead");
    await stage().sql("update millrace.job set attempt = max_attempts where claim_id = $1", [
      jobId,
    ]);
    await stage().settle(job, dead);
    expect(await session.endBatches(100)).toEqual([{ jobId, items: 2 }]);
    await session.close();
    const died = (await raised()).map(({ data }) => data.job_id);
    expect(died.sort()).toEqual([jobId, ...items].sort());
  });

  it("raises one notification with a death, without payload, key or reference", async () => {
    await create();
    const payload = '{"card":"of-no-concern"}';
    const id = await die({ payload, tenant: "acme", reference: "r-of-no-concern" });
    const [row, ...others] = await raised();
    expect(others).toEqual([]);
    expect(row).toMatchObject({ kind: "job.dead", tenant: "acme" });
    expect(row?.data).toEqual({
      ...{ job_id: id, type: "work", attempt: 1, max_attempts: 5, crash_count: 0 },
      ...{ correlation_id: id },
      error: { class: "retryable", message: "broken", fingerprint: "f00d" },
    });
    expect(JSON.stringify(row)).not.toContain("of-no-concern");
  });

  it("raises nothing with a death that did not happen, and one with one that is repeated", async () => {
    await create();
    const job = await stage().running(await stage().queue());
    const stale = { ...job, token: { ...job.token, claimId: randomUUID() } };
    expect(await stage().settle(stale, dead)).toBeUndefined();
    expect(await raised()).toEqual([]);
    expect(await stage().settle(job, dead)).toBe("dead");
    expect(await stage().settle(job, dead)).toBeUndefined();
    expect(await raised()).toHaveLength(1);
  });

  it("raises nothing for retries and cancels", async () => {
    await create();
    for (const outcome of [retried(), cancelled]) {
      const job = await stage().running(await stage().queue());
      await stage().settle(job, outcome);
    }
    expect(await raised()).toEqual([]);
  });

  it("raises one when the reclaimer lets a job die", async () => {
    await create();
    const leaseId = await stage().openLease();
    const job = await stage().running(await stage().queue(), {}, { leaseId });
    await stage().endLease(leaseId);
    expect(await stage().settleLapsed(job, leaseId, dead, true)).toBe("dead");
    expect(await raised()).toMatchObject([{ data: { job_id: job.id, crash_count: 1 } }]);
  });

  it("raises nothing when no active webhook listens for it", async () => {
    await die();
    await create({ kinds: ["queue.deep"] });
    const { id } = await create();
    await store().update(id, { isActive: false }, by);
    await die();
    expect(await raised()).toEqual([]);
  });

  it("raises nothing when a delivery dies", async () => {
    await create();
    await die({ type: "millrace.webhook_delivery" });
    expect(await raised()).toEqual([]);
  });

  it("announces what it raised", async () => {
    await create();
    const heard: string[] = [];
    const listener = await stage().store.listen(({ kind }) => heard.push(kind));
    await die();
    await expect.poll(() => heard).toContain("notifications");
    await listener.close();
  });

  it("dispatches each notification once to each webhook that wants it, also to many at once", async () => {
    const [all, own] = [await create(), await create({ tenant: "acme" })];
    await create({ tenant: "other" });
    const ids = [];
    for (let i = 0; i < 20; i++) ids.push(await die());
    const rounds = await Promise.all(Array.from({ length: 4 }, () => dispatch(7)));
    rounds.push(await dispatch());
    const jobs = rounds.flatMap((round) => round.jobs);
    const pairs = jobs.map(({ payload }) => {
      const { webhook, notification } = JSON.parse(payload);
      return `${webhook} ${notification.data.job_id}`;
    });
    const expected = ids.flatMap((id) => [`${all.id} ${id}`, `${own.id} ${id}`]);
    expect(pairs.sort()).toEqual(expected.sort());
    const stored = await stage().store.find(jobs.map(({ id }) => id));
    expect(new Set(stored.map(({ state }) => state))).toEqual(new Set(["ready"]));
    expect(stored).toHaveLength(40);
    expect(await raised()).toEqual([]);
  });

  it("passes over what another notifier has in its hands", async () => {
    await create();
    for (let i = 0; i < 2; i++) await die();
    const other = await stage().session();
    await other.query("begin");
    await other.query("select from millrace.notification order by id limit 1 for update");
    expect((await dispatch()).notifications).toHaveLength(1);
    await other.query("rollback");
    await other.close();
    expect((await dispatch()).notifications).toHaveLength(1);
  });

  it("dispatches nothing when the plan fails, and keeps the notification", async () => {
    await create();
    await die();
    const failing = notifier().dispatch({
      ...{ limit: 10, queueId: await stage().queue(), minAgeMs: 0 },
      plan: () => {
        throw new Error("no plan");
      },
    });
    await expect(failing).rejects.toThrow("no plan");
    expect(await raised()).toHaveLength(1);
    expect((await dispatch()).notifications).toHaveLength(1);
  });

  it("refuses a second delivery of one notification to one webhook, even if it came back", async () => {
    await create();
    await die();
    const [row] = await raised();
    const { jobs } = await dispatch();
    await stage().sql(
      "insert into millrace.notification (id, kind, tenant, queue, data) values ($1, $2, $3, $4, $5)",
      [row?.id, row?.kind, row?.tenant, row?.queue, JSON.stringify(row?.data)],
    );
    const again = await dispatch();
    expect(again.notifications).toHaveLength(1);
    expect(await stage().store.find(again.jobs.map(({ id }) => id))).toEqual([]);
    expect(await stage().store.find(jobs.map(({ id }) => id))).toHaveLength(1);
  });

  it("passes on kinds that it does not know", async () => {
    const webhook = await create({ kinds: ["later.kind"] });
    await stage().sql(
      "insert into millrace.notification (kind, data) values ('later.kind', '{\"n\":1}')",
    );
    const { jobs, notifications } = await dispatch();
    expect(notifications).toMatchObject([{ kind: "later.kind" }] satisfies Partial<Notification>[]);
    expect(JSON.parse(jobs[0]?.payload ?? "")).toMatchObject({ webhook: webhook.id });
  });

  it("raises one notification for each crossing of a warning depth, whoever looks", async () => {
    await create();
    const queueId = await stage().queue();
    await stage().sql("update millrace.queue set warn_depth = 10 where id = $1", [queueId]);
    const look = () => Promise.all(Array.from({ length: 3 }, () => notifier().raiseDepths()));
    const end = async (count: number) => {
      await stage().complete(await stage().claim(queueId, { limit: count }));
    };
    await stage().put(...stage().jobs(queueId, 10));
    expect(await look()).toEqual([0, 0, 0]);
    await stage().put(stage().job(queueId));
    expect((await look()).sort()).toEqual([0, 0, 1]);
    expect(await raised()).toMatchObject([
      { kind: "queue.deep", data: { depth: 11, warn_depth: 10 } },
    ]);
    // Down to the mark is not over yet: a tenth below it is.
    await end(1);
    expect(await look()).toEqual([0, 0, 0]);
    await stage().put(stage().job(queueId));
    expect(await look()).toEqual([0, 0, 0]);
    await end(2);
    await look();
    await stage().put(...stage().jobs(queueId, 2));
    expect((await look()).sort()).toEqual([0, 0, 1]);
    expect(await raised()).toHaveLength(2);
  });

  it("marks a webhook failing once, after so many failures in a row, and recovered once", async () => {
    const { id } = await create();
    expect(await store().noteFailed(id, failed(3))).toBeNull();
    expect(await store().noteDelivered(id)).toBeNull();
    const changes = [];
    for (let i = 0; i < 5; i++) changes.push(await store().noteFailed(id, failed(3)));
    expect(changes).toEqual([null, null, "failing", null, null]);
    expect((await store().list())[0]).toMatchObject({ failures: 5, lastError: "no" });
    expect((await store().list())[0]?.failingSince).toBeInstanceOf(Date);
    expect(await store().noteDelivered(id)).toBe("recovered");
    expect((await store().list())[0]).toMatchObject({ failures: 0, failingSince: null });
    expect(await store().noteFailed(randomUUID(), failed(1))).toBeNull();
  });

  it("keeps the old signing key for as long as it was told", async () => {
    const first = newWebhook();
    const { id } = await store().create(first, by);
    const second = randomBytes(32);
    await store().rotate(id, second, 3_600_000, by);
    expect((await store().find(id))?.signingKeys).toEqual([second, first.signingKey]);
    const third = randomBytes(32);
    await store().rotate(id, third, 0, by);
    expect((await store().find(id))?.signingKeys).toEqual([third]);
    expect(await store().rotate(randomUUID(), third, 0, by)).toBeNull();
  });

  it("changes what it is told to and nothing else, and forgets failures of another receiver", async () => {
    const { id } = await create({ queues: ["a"] });
    await store().noteFailed(id, failed(1));
    expect(await store().update(id, { name: "theirs" }, by)).toMatchObject({
      ...{ name: "theirs", queues: ["a"], failures: 1, kinds: ["job.dead", "queue.deep"] },
    });
    expect(await store().update(id, { queues: null, kinds: ["job.dead"] }, by)).toMatchObject({
      ...{ queues: null, kinds: ["job.dead"], failures: 1 },
    });
    expect(await store().update(id, { url: "https://example.org/" }, by)).toMatchObject({
      ...{ url: "https://example.org/", failures: 0, failingSince: null },
    });
    expect(await store().update(randomUUID(), {}, by)).toBeNull();
  });

  it("leaves an audit entry for every change, without key or URL", async () => {
    const webhook = newWebhook();
    await store().create(webhook, by);
    await store().update(webhook.id, { url: "https://example.org/token" }, by);
    await store().rotate(webhook.id, randomBytes(32), 0, by);
    expect(await store().delete(webhook.id, by)).toBe(true);
    expect(await store().delete(webhook.id, by)).toBe(false);
    const entries = await stage().sql(
      "select actor, action, reason, details from millrace.audit where target = $1 order by id",
      [webhook.id],
    );
    const actions = ["create", "update", "rotate_secret", "delete"].map(
      (verb) => `webhook_${verb}`,
    );
    expect(entries).toEqual(
      actions.map((action) => ({ actor: "operator", action, reason: null, details: null })),
    );
  });
};
