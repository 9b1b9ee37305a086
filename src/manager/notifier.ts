// Turns notifications into deliveries. Any number of processes may run it: each notification is locked,
// and deleted in the transaction that enqueues its deliveries.

import { createHash } from "node:crypto";
import { createDelivery, type Notification, wantsNotification } from "../domain/notification.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type { Store } from "../store/store.ts";
import type {
  DeliveryJob,
  Dispatched,
  DispatchPlan,
  NotifierSession,
  Webhook,
} from "../store/webhook.ts";

export const deliveryQueue = "millrace.webhooks";
export const deliveryType = "millrace.webhook_delivery";

export interface NotifierOptions {
  readonly store: Pick<Store, "ensureQueues">;
  readonly session: NotifierSession;
  /** False while somebody else does it. */
  readonly isWanted: () => Promise<boolean>;
  readonly intervalMs: number;
  /** Leaves what is younger to others. */
  readonly minAgeMs?: number;
  /** Called when deliveries wait that nobody has taken. */
  readonly deliver?: () => void;
  /** Of each delivery. */
  readonly maxAttempts?: number | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const batch = 50;
const defaultMaxAttempts = 20;

export function createNotifier(options: NotifierOptions): Loop {
  const { store, session, isWanted, deliver, minAgeMs = 0 } = options;
  const { events, maxAttempts = defaultMaxAttempts } = options;
  let queueId: number | undefined;

  async function dispatchAll(): Promise<number> {
    queueId ??= (await store.ensureQueues("", [deliveryQueue]))[0]?.id;
    if (queueId === undefined) throw new Error(`there is no queue ${deliveryQueue}`);
    const plan = planDeliveries({ queueId, maxAttempts });
    let count = 0;
    for (;;) {
      const dispatched = await session.dispatch({ limit: batch, queueId, plan, minAgeMs });
      report(dispatched, events);
      if (dispatched.jobs.length > 0) deliver?.();
      count += dispatched.notifications.length;
      if (dispatched.notifications.length < batch) return count;
    }
  }

  return new Loop({
    ...options,
    name: "notifier",
    run: async () => {
      if (!(await isWanted())) return { processed: 0 };
      await session.raiseDepths();
      const { notifications, deliveries } = await session.outlook(deliveryQueue, minAgeMs);
      if (deliveries) deliver?.();
      return { processed: notifications ? await dispatchAll() : 0 };
    },
  });
}

interface DeliveryJobOptions {
  readonly queueId: number;
  readonly maxAttempts: number;
}

/** One delivery for each webhook that wants to hear of it. */
export const planDeliveries =
  (options: DeliveryJobOptions): DispatchPlan =>
  (notifications, webhooks) =>
    notifications.flatMap((notification) =>
      webhooks
        .filter((webhook) => wantsNotification(webhook, notification))
        .map((webhook) => deliveryJob(webhook, notification, options)),
    );

function deliveryJob(
  webhook: Webhook,
  notification: Notification,
  { queueId, maxAttempts }: DeliveryJobOptions,
): DeliveryJob {
  const delivery = createDelivery(uuidv7(), webhook.id, notification);
  const key = `${webhook.id}/${notification.id}`;
  return {
    id: delivery.delivery,
    type: deliveryType,
    queueId,
    tenant: webhook.tenant ?? "default",
    weight: 5,
    maxAttempts,
    payload: JSON.stringify(delivery),
    correlationId: notification.id,
    key,
    requestHash: createHash("sha256").update(key).digest("hex"),
    meta: { source: "notifier" },
  };
}

function report({ notifications, jobs }: Dispatched, events: Events): void {
  for (const { id, kind } of notifications) {
    const deliveries = jobs.filter((job) => job.correlationId === id).length;
    events.emit("notification.dispatched", { id, kind, deliveries });
  }
}
