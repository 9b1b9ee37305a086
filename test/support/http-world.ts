// What a tenant named acme has, for everybody else not to see.

import { expect } from "vitest";
import type { Http } from "./http.ts";
import { until } from "./until.ts";

export interface Target {
  readonly id: string;
  readonly query?: string;
  readonly body?: unknown;
}

export interface World {
  /** By operation: an id of acme's, and what makes the call a good one. */
  readonly targets: Readonly<Record<string, Target>>;
  readonly queueName: string;
  /** Appears wherever something of acme's does. */
  readonly marks: RegExp;
  stillThere(): Promise<void>;
}

const secretWord = "zanzibar";

/** A dead letter of this queue, by way of a robot that fails. */
export async function dieOnce(
  http: Http,
  key: string,
  queueId: number,
  { payload = secretWord as unknown, message = `${secretWord} burnt`, reference = "" } = {},
): Promise<string> {
  const more = reference === "" ? {} : { reference };
  await http.call("POST", "/api/queue-items", {
    key,
    body: { queue_id: queueId, payload, ...more },
  });
  const next = await http.call("GET", `/api/queue-items/next?queue_id=${queueId}`, { key });
  const { id, token } = next.body;
  const body = { status: "FAILED", token, error_message: message };
  const settled = await http.call("PUT", `/api/queue-items/${id}`, { key, body });
  expect(settled.body.status).toBe("FAILED");
  return id;
}

export async function acmeWorld(http: Http): Promise<World> {
  const queueName = `${secretWord}-queue`;
  const made = { name: queueName, tenant_id: "acme" };
  const queue = (await http.call("POST", "/api/queues", { body: made })).body;
  const key = await http.key("robot", "acme");
  const producer = await http.key("producer", "acme");
  const job = { type: `${secretWord}.job`, queue: queueName, payload: { word: secretWord } };
  const enqueued = (await http.call("POST", "/api/jobs", { key: producer, body: job })).body;
  await http.call("POST", `/api/jobs/${enqueued.id}/cancel`, { key: producer });
  const dead = await dieOnce(http, key, queue.id);
  const add = { queue_id: queue.id, payload: secretWord, reference: secretWord };
  const waiting = (await http.call("POST", "/api/queue-items", { key, body: add })).body;
  const lease = `/api/queue-items/next?queue_id=${queue.id}`;
  const held = (await http.call("GET", lease, { key })).body;
  const keys = (await http.call("GET", "/api/keys")).body.keys;
  const keyId = keys.find((one: { tenant_id: string }) => one.tenant_id === "acme").id;
  const trigger = {
    type: "TIME",
    name: secretWord,
    cron: "0 0 1 1 *",
    job_type: `${secretWord}.t`,
  };
  const own = { tenant_id: "acme" };
  const timed = (await http.call("POST", "/api/triggers", { body: { ...trigger, ...own } })).body;
  const hook = { url: `https://${secretWord}.example.com/`, ...own };
  const told = (await http.call("POST", "/api/webhooks", { body: hook })).body;
  const notes = { notes: "because" };
  const ofQueue: Target = { id: String(queue.id) };
  const ofItem: Target = { id: waiting.id };
  const ofDead: Target = { id: dead };
  return {
    queueName,
    marks: new RegExp(`${secretWord}|acme`, "i"),
    targets: {
      readJob: { id: enqueued.id },
      explainJob: { id: enqueued.id },
      cancelJob: { id: enqueued.id, body: {} },
      retryJob: { id: enqueued.id, body: notes },
      readQueue: ofQueue,
      updateQueue: { ...ofQueue, body: { description: "theirs" } },
      deleteQueue: { ...ofQueue, query: "?confirm_count=3" },
      pauseQueue: ofQueue,
      resumeQueue: ofQueue,
      purgeQueue: { ...ofQueue, body: notes },
      readQueueStats: ofQueue,
      readItem: ofItem,
      settleItem: { id: held.id, body: { status: "DONE", token: held.token } },
      renewItem: { id: held.id, body: { token: held.token } },
      deleteItem: { ...ofDead },
      readDeadLetter: ofDead,
      reprocessDeadLetter: { ...ofDead, body: notes },
      discardDeadLetter: { ...ofDead, body: notes },
      readTrigger: { id: timed.id },
      updateTrigger: { id: timed.id, body: { enabled: false } },
      deleteTrigger: { id: timed.id },
      updateWebhook: { id: told.id, body: { is_active: false } },
      deleteWebhook: { id: told.id },
      readKey: { id: keyId },
      rotateKey: { id: keyId, body: {} },
      revokeKey: { id: keyId },
      readTenant: { id: "acme" },
      updateTenant: { id: "acme", body: { weight: 7 } },
      pauseTenant: { id: "acme" },
      resumeTenant: { id: "acme" },
      eraseTenant: { id: "acme", query: "?confirm=acme&notes=theirs" },
    },
    async stillThere() {
      const manager = await http.key("manager", "acme");
      await until("acme's things are there", async () => {
        const read = await http.call("GET", `/api/queues/${queue.id}`, { key: manager });
        return read.body.description === null && read.body.paused === false;
      });
      const read = await http.call("GET", `/api/jobs/admin/dlq/${dead}`, { key: manager });
      expect(read.body).toMatchObject({ state: "dead", payload: secretWord, reprocessed_as: null });
      const item = await http.call("GET", `/api/queue-items/${held.id}`, { key });
      expect(item.body).toMatchObject({
        status: "IN_PROGRESS",
        lock_expires_at: held.lock_expires_at,
      });
      expect((await http.call("GET", `/api/keys/${keyId}`)).body.revoked_at).toBe(null);
      const tenant = (await http.call("GET", "/api/tenants/acme")).body;
      expect(tenant).toMatchObject({ weight: 1, paused: false });
      const still = await http.call("GET", `/api/triggers/${timed.id}`, { key: manager });
      expect(still.body.enabled).toBe(true);
      const { webhooks } = (await http.call("GET", "/api/webhooks", { key: manager })).body;
      expect(webhooks).toMatchObject([{ id: told.id, is_active: true }]);
    },
  };
}
