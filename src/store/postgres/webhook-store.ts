import type { WebhookStore } from "../webhook.ts";
import type { Database } from "./database.ts";
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  noteWebhookDelivered,
  noteWebhookFailed,
  rotateWebhookSecret,
  takeWebhookTurn,
  updateWebhook,
} from "./webhooks.ts";

export function createWebhookStore(database: Database): WebhookStore {
  return {
    create: (webhook, { actor }) => createWebhook(database, webhook, actor),
    list: () => listWebhooks((source, values) => database.query(source, values)),
    find: (id) => findWebhook(database, id),
    update: (id, settings, { actor }) => updateWebhook(database, id, settings, actor),
    rotate: (id, key, overlapMs, { actor }) =>
      rotateWebhookSecret(database, id, key, overlapMs, actor),
    delete: (id, { actor }) => deleteWebhook(database, id, actor),
    noteDelivered: (id) => noteWebhookDelivered(database, id),
    noteFailed: (id, failed) => noteWebhookFailed(database, id, failed),
    takeTurn: (id, holdMs) => takeWebhookTurn(database, id, holdMs),
  };
}
