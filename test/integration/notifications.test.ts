import { describe, expect, it } from "vitest";
import { newQueue, refusal } from "../support/instance.ts";
import { status } from "../support/receiver.ts";
import { useTeller } from "../support/teller.ts";
import { until } from "../support/until.ts";

const { instances, teller, receiver, create, fail, failing } = useTeller();

describe("a final failure", () => {
  it("is told of once, with what is needed to find it and not its payload", async () => {
    await create();
    await teller().notifications.start();
    const queue = newQueue();
    const id = await fail(queue);
    const [received] = await receiver().hears(1);
    expect(received?.told).toMatchObject({
      ...{ kind: "job.dead", queue, tenant: "default" },
      data: {
        ...{ job_id: id, type: "always.fails", attempt: 2, max_attempts: 2, crash_count: 0 },
        error: { class: "retryable", message: "out of luck" },
      },
    });
    expect(received?.body).not.toContain("hidden");
    expect(received?.headers["content-type"]).toBe("application/json");
    expect(receiver().received).toHaveLength(1);
  });

  it("is told to every webhook that wants it, and to no other", async () => {
    const queue = newQueue();
    const wanting = [await create(), await create({ tenant: "acme", queues: [queue] })];
    await create({ queues: ["another"] });
    await create({ tenant: "other" });
    await create({ kinds: ["queue.deep"] });
    const inactive = await create();
    await instances.millrace.webhooks.update(inactive.id, { isActive: false });
    await teller().notifications.start();
    const dispatched = teller().events.once("notification.dispatched");
    const id = await fail(queue, "acme");
    expect(await dispatched).toMatchObject({ kind: "job.dead", deliveries: wanting.length });
    const received = await receiver().hears(2);
    expect(received.map(({ told }) => told.data.job_id)).toEqual([id, id]);
    expect(new Set(received.map(({ told }) => told.id)).size).toBe(1);
    expect(receiver().distinct.size).toBe(2);
  });

  it("rule 2: of one tenant is never told to another's webhook", async () => {
    await create({ tenant: "acme" });
    await create({ tenant: "other" });
    const deliveries: number[] = [];
    teller().events.on("notification.dispatched", (told) => deliveries.push(told.deliveries));
    await teller().notifications.start();
    for (const tenant of ["acme", "other", "third"]) await fail(newQueue(), tenant);
    await until("all three are dispatched", () => deliveries.length === 3);
    expect(deliveries).toEqual([1, 1, 0]);
    const received = await receiver().hears(2);
    expect(received.map(({ told }) => told.tenant).sort()).toEqual(["acme", "other"]);
  });
});

describe("a queue over its warning depth", () => {
  it("is told of once for the crossing", async () => {
    await create({ kinds: ["queue.deep"] });
    const queue = newQueue();
    await instances.millrace.configureQueue(queue, { warnDepth: 2 });
    await instances.millrace.enqueueMany(failing(queue), [1, 2, 3, 4]);
    await teller().notifications.start();
    const second = await instances.connect();
    await second.notifications.start();
    const [received] = await receiver().hears(1);
    expect(received?.told).toMatchObject({
      ...{ kind: "queue.deep", queue, tenant: null, data: { depth: 4, warn_depth: 2 } },
    });
    const looked = async () => (await second.notifications.report())?.lastRunAt;
    const before = await looked();
    await until(
      "somebody looks again",
      async () => (await looked())?.getTime() !== before?.getTime(),
    );
    expect(receiver().received).toHaveLength(1);
  });
});

describe("a tenant over its warning depth", () => {
  it("is told of once for the crossing, to its own webhooks", async () => {
    await create({ kinds: ["tenant.deep"], tenant: "wide" });
    await create({ kinds: ["tenant.deep"], tenant: "other" });
    const { millrace } = instances;
    await millrace.tenants.configure("wide", { warnDepth: 2 });
    for (const queue of [newQueue(), newQueue()])
      await millrace.enqueueMany(failing(queue), [1, 2], { tenant: "wide" });
    await teller().notifications.start();
    const [received] = await receiver().hears(1);
    expect(received?.told).toMatchObject({
      ...{ kind: "tenant.deep", queue: null, tenant: "wide", data: { depth: 4, warn_depth: 2 } },
    });
    const looked = async () => (await teller().notifications.report())?.lastRunAt;
    const before = await looked();
    await until("it looks again", async () => (await looked())?.getTime() !== before?.getTime());
    expect(receiver().received).toHaveLength(1);
  });
});

describe("a webhook", () => {
  it("can be tested", async () => {
    const webhook = await create();
    await teller().notifications.start();
    const { id } = await teller().webhooks.test(webhook.id);
    expect(await teller().result(id)).toEqual({ delivered: true, status: 204 });
    expect(receiver().received[0]?.told).toMatchObject({
      ...{ kind: "webhook.test", data: { webhook_id: webhook.id } },
    });
    receiver().answer = status(500);
    const failed = await teller().waitFor((await teller().webhooks.test(webhook.id)).id);
    expect(failed).toMatchObject({
      state: "dead",
      error: { message: "The receiver answered 500." },
    });
  });

  it("signs with both secrets while they are being changed, and then with the new one", async () => {
    const webhook = await create();
    await teller().notifications.start();
    const tell = async () => teller().result((await teller().webhooks.test(webhook.id)).id);
    const { secret } = await teller().webhooks.rotateSecret(webhook.id);
    await tell();
    receiver().secrets = [secret];
    await tell();
    expect(receiver().received).toHaveLength(2);
    receiver().secrets = [webhook.secret];
    const { secret: third } = await teller().webhooks.rotateSecret(webhook.id, { overlapMs: 0 });
    await teller().waitFor((await teller().webhooks.test(webhook.id)).id);
    expect(receiver().refused).toHaveLength(1);
    receiver().secrets = [third];
    await tell();
    expect(receiver().received).toHaveLength(3);
  });

  it("that is deleted gets nothing more, and its deliveries end", async () => {
    const webhook = await create();
    const { id } = await teller().webhooks.test(webhook.id);
    await teller().webhooks.delete(webhook.id);
    await teller().notifications.start();
    expect(await teller().result(id)).toEqual({ delivered: false, reason: "webhook_gone" });
    expect(receiver().received).toEqual([]);
    for (const call of [
      () => teller().webhooks.test(webhook.id),
      () => teller().webhooks.delete(webhook.id),
      () => teller().webhooks.update(webhook.id, {}),
      () => teller().webhooks.rotateSecret("no uuid"),
    ])
      expect((await refusal(call())).code).toBe("WEBHOOK_NOT_FOUND");
  });

  it.each([
    { kinds: [] },
    { kinds: ["job.born" as "job.dead"] },
    { queues: [] },
    { queues: [""] },
    { tenant: "" },
    { name: "\n" },
  ])("is refused with wrong settings: %o", async (options) => {
    expect((await refusal(create(options))).code).toBe("OPTION_INVALID");
  });
});

describe("notifications", () => {
  it("start once, stop, start again, and stop with their instance", async () => {
    await create();
    await Promise.all([teller().notifications.start(), teller().notifications.start()]);
    await teller().notifications.stop();
    expect(await teller().notifications.report()).toBeNull();
    const id = await fail();
    await teller().notifications.start();
    const [received] = await receiver().hears(1);
    expect(received?.told.data.job_id).toBe(id);
    expect(await teller().notifications.report()).toMatchObject({ name: "notifier", errors: 0 });
    await teller().stop();
    teller().notifications.deliver();
    expect((await refusal(teller().notifications.start())).code).toBe("STOPPED");
  });
});
