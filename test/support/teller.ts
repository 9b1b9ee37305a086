// A receiver, an instance that tells it of things, and jobs that fail for good.

import { afterEach, beforeEach } from "vitest";
import { defineJob, type Millrace } from "../../src/index.ts";
import { newQueue, useMillrace } from "./instance.ts";
import { Receiver } from "./receiver.ts";

const failing = (queue: string) =>
  defineJob({
    type: "always.fails",
    queue,
    maxAttempts: 2,
    retry: { baseMs: { retryable: 1 } },
    run: () => {
      throw new Error("out of luck");
    },
  });

export function useTeller() {
  const instances = useMillrace({ webhooks: { allowInsecureLoopback: true } });
  let receiver: Receiver;
  let teller: Millrace;

  beforeEach(async () => {
    receiver = await Receiver.start();
    teller = await instances.connect();
  });
  afterEach(async () => {
    for (const { id } of await instances.millrace.webhooks.list())
      await instances.millrace.webhooks.delete(id);
    await receiver.close();
  });

  async function create(options: Partial<Parameters<Millrace["webhooks"]["create"]>[0]> = {}) {
    const webhook = await instances.millrace.webhooks.create({ url: receiver.url, ...options });
    receiver.secrets.push(webhook.secret);
    return webhook;
  }

  async function fail(queue = newQueue(), tenant = "default"): Promise<string> {
    const job = failing(queue);
    await instances.work([job]);
    const { id } = await instances.millrace.enqueue(job, { hidden: "payload" }, { tenant });
    await instances.millrace.waitFor(id);
    return id;
  }

  return {
    ...{ instances, create, fail, failing },
    teller: () => teller,
    receiver: () => receiver,
  };
}
