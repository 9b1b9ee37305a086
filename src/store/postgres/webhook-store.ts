import type { WebhookStore } from "../webhook.ts";
import type { Database } from "./database.ts";
import { dispatchNotifications, raiseQueueDepths } from "./notifications.ts";
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  noteWebhookDelivered,
  noteWebhookFailed,
  rotateWebhookSecret,
  updateWebhook,
} from "./webhooks.ts";

export function createWebhookStore(database: Database): WebhookStore {
  return {
    create: (webhook, { actor }) => createWebhook(database, webhook, actor),
    list: () => listWebhooks(database.query.bind(database)),
    find: (id) => findWebhook(database, id),
    update: (id, settings, { actor }) => updateWebhook(database, id, settings, actor),
    rotate: (id, key, overlapMs, { actor }) =>
      rotateWebhookSecret(database, id, key, overlapMs, actor),
    delete: (id, { actor }) => deleteWebhook(database, id, actor),
    noteDelivered: (id) => noteWebhookDelivered(database, id),
    noteFailed: (id, error, failingAfter) => noteWebhookFailed(database, id, error, failingAfter),
    raiseDepths: () => raiseQueueDepths(database),
    dispatch: (limit, queueId, plan) => dispatchNotifications(database, limit, queueId, plan),
  };
}
