import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createGate } from "../support/gate.ts";
import { newQueue } from "../support/instance.ts";
import { Receiver, status } from "../support/receiver.ts";
import { useTeller } from "../support/teller.ts";
import { until } from "../support/until.ts";

const { instances, teller, receiver, create, fail, failing } = useTeller();
const soon = { retry: { baseMs: { transient: 20, retryable: 20 }, jitter: 0 } };

describe("a receiver that fails", () => {
  it("is tried again under the same id, marked failing once, and recovered once", async () => {
    const { id } = await create();
    receiver().answer = status(500);
    await teller().notifications.start({ ...soon, failingAfter: 3 });
    const said: string[] = [];
    teller().events.on("webhook.failing", ({ failures }) => said.push(`failing after ${failures}`));
    teller().events.on("webhook.recovered", () => said.push("recovered"));
    await fail();
    await receiver().hears(4);
    const [marked] = await instances.millrace.webhooks.list();
    expect(marked).toMatchObject({ id, isActive: true, lastError: "The receiver answered 500." });
    expect(marked?.failingSince).toBeInstanceOf(Date);
    receiver().answer = status(200);
    await until("the webhook is well again", () => said.includes("recovered"));
    expect(said).toEqual(["failing after 3", "recovered"]);
    expect(receiver().distinct.size).toBe(1);
    const [well] = await instances.millrace.webhooks.list();
    expect(well).toMatchObject({ failures: 0, failingSince: null });
  });

  it("backs off: each wait is longer than the one before", async () => {
    await create();
    receiver().answer = status(500);
    const delays: number[] = [];
    teller().events.on("job.settled", ({ outcome }) => {
      if (outcome.kind === "retried") delays.push(outcome.delayMs);
      if (outcome.kind === "dead") delays.push(-1);
    });
    await teller().notifications.start({ ...soon, maxAttempts: 4 });
    await fail();
    await until("the delivery is dead", () => delays.includes(-1));
    expect(delays).toEqual([20, 40, 80, -1]);
  });

  it("and says when to come back is heard", async () => {
    await create();
    receiver().answer = status(503, { "retry-after": "7" });
    const settled = teller().events.once(
      "job.settled",
      ({ outcome }) => outcome.kind === "retried",
    );
    await teller().notifications.start();
    await fail();
    expect((await settled).outcome).toMatchObject({
      ...{ kind: "retried", delayMs: 7_000, error: { class: "rate_limited" } },
    });
  });

  it.each(["0", "-5", "0.5", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"])(
    "and asks for less patience than ours (%s) gets ours",
    async (value) => {
      await create();
      receiver().answer = status(503, { "retry-after": value });
      const delays: number[] = [];
      teller().events.on("job.settled", ({ outcome }) => {
        if (outcome.kind === "retried") delays.push(outcome.delayMs);
        if (outcome.kind === "dead") delays.push(-1);
      });
      await teller().notifications.start({ ...soon, maxAttempts: 3 });
      await fail();
      await until("the delivery is dead", () => delays.includes(-1));
      expect(delays).toEqual([20, 40, -1]);
    },
  );

  it("is tried by one delivery at a time, while the others wait without spending attempts", async () => {
    await create();
    receiver().answer = status(500);
    const retry = { baseMs: { retryable: 20 }, capMs: 100, jitter: 0 };
    await teller().notifications.start({ retry, maxAttempts: 1_000, timeoutMs: 1_000 });
    const snoozed = teller().events.once(
      "job.settled",
      ({ outcome }) => outcome.kind === "snoozed",
    );
    const failed = teller().events.once("webhook.delivery_failed");
    await fail();
    await failed;
    let [underWay, most] = [0, 0];
    receiver().answer = async (response) => {
      most = Math.max(most, ++underWay);
      await delay(20);
      underWay--;
      response.writeHead(500).end();
    };
    for (let i = 0; i < 12; i++) await fail();
    expect((await snoozed).outcome).toMatchObject({ kind: "snoozed" });
    await receiver().hears(receiver().received.length + 5);
    expect(most).toBe(1);
    receiver().answer = status(200);
    await until("all are told", () => receiver().distinct.size === 13);
  });

  it("or took its time leaves room for others", async () => {
    const other = await Receiver.start();
    other.secrets = [(await create({ url: other.url, kinds: ["queue.deep"] })).secret];
    await create({ kinds: ["job.dead"] });
    receiver().answer = async (response) => {
      await delay(1_100);
      response.end();
    };
    await teller().notifications.start({ concurrency: 2, timeoutMs: 600_000 });
    const delivered = teller().events.once("webhook.delivered");
    await fail();
    await delivered;
    const gate = createGate();
    receiver().answer = async (response) => {
      await gate.opened;
      response.end();
    };
    for (let i = 0; i < 3; i++) await fail();
    await receiver().hears(2);
    const queue = newQueue();
    await instances.millrace.configureQueue(queue, { warnDepth: 1 });
    await instances.millrace.enqueueMany(failing(queue), [1, 2, 3]);
    await other.hears(1);
    expect(receiver().received).toHaveLength(2);
    gate.open();
    await receiver().hears(4);
    await other.close();
  });

  it("for good leaves a dead letter, of which nobody is told", async () => {
    const { id: webhook } = await create();
    receiver().answer = status(404);
    await teller().notifications.start({ ...soon, maxAttempts: 2 });
    const dispatched: string[] = [];
    teller().events.on("notification.dispatched", ({ kind }) => dispatched.push(kind));
    await fail();
    const letter = await until("the delivery is dead", async () => {
      const dead = await instances.millrace.deadLetters({ queue: "millrace.webhooks" });
      return dead.find(({ payload }) => (payload as { webhook: string }).webhook === webhook);
    });
    expect(letter).toMatchObject({ type: "millrace.webhook_delivery", attempt: 2 });
    const [left] = await instances.query<{ n: number }>(
      "select count(*)::int as n from millrace.notification",
    );
    expect(left?.n).toBe(0);
    expect(dispatched).toEqual(["job.dead"]);
    // Reprocessed by a person, it is still the same delivery to the receiver().
    receiver().answer = status(200);
    const again = await instances.millrace.reprocess(letter.id, "the receiver is back");
    await teller().result(again.id);
    expect(receiver().distinct.size).toBe(1);
  });
});
