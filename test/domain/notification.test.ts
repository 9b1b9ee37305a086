import { describe, expect, it } from "vitest";
import {
  bodyOf,
  createDelivery,
  type Listener,
  type Notification,
  wantsNotification,
} from "../../src/domain/notification.ts";

const notification: Notification = {
  ...{ id: "n1", kind: "job.dead", tenant: "acme", queue: "mail" },
  ...{ at: new Date("2026-03-01T12:00:00Z"), data: {} },
};
const everything: Listener = {
  ...{ isActive: true, tenant: null, kinds: ["job.dead", "queue.deep"], queues: null },
};

describe("a webhook wants", () => {
  const wants = (listener: Partial<Listener>, told: Partial<Notification> = {}) =>
    wantsNotification({ ...everything, ...listener }, { ...notification, ...told });

  it("its kinds only", () => {
    expect(wants({})).toBe(true);
    expect(wants({ kinds: ["queue.deep"] })).toBe(false);
    expect(wants({}, { kind: "webhook.test" })).toBe(false);
  });

  it("its own tenant's only, and nothing that is nobody's", () => {
    expect(wants({ tenant: "acme" })).toBe(true);
    expect(wants({ tenant: "other" })).toBe(false);
    expect(wants({ tenant: "acme" }, { tenant: null })).toBe(false);
  });

  it("its queues only", () => {
    expect(wants({ queues: ["mail"] })).toBe(true);
    expect(wants({ queues: ["sms"] })).toBe(false);
    expect(wants({ queues: ["mail"] }, { queue: null })).toBe(false);
  });

  it("nothing while it is inactive", () => {
    expect(wants({ isActive: false })).toBe(false);
  });
});

describe("a delivery", () => {
  it("says the same in every attempt", () => {
    const delivery = createDelivery("d1", "w1", { ...notification, data: { type: "a" } });
    const stored = JSON.parse(JSON.stringify(delivery));
    expect(bodyOf(stored)).toBe(bodyOf(delivery));
    expect(JSON.parse(bodyOf(delivery))).toEqual({
      ...{ id: "n1", delivery_id: "d1", kind: "job.dead", at: "2026-03-01T12:00:00.000Z" },
      ...{ tenant: "acme", queue: "mail", data: { type: "a" } },
    });
  });

  it("rule 20: withholds a message that holds a secret", () => {
    const message = `401 for Bearer ${"a1".repeat(20)}`;
    const data = { job_id: "j", error: { class: "retryable", message }, more: [message] };
    const body = bodyOf(createDelivery("d1", "w1", { ...notification, data }));
    expect(body).not.toContain("a1a1");
    expect(JSON.parse(body).data).toMatchObject({
      ...{
        job_id: "j",
        error: { class: "retryable", message: expect.stringContaining("withheld") },
      },
    });
  });
});
