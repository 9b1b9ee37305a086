// What somebody outside is told of, who wants to hear it, and what is said.

import { secretValueKind } from "./sensitive-values.ts";

export const notificationKinds = [
  "job.dead",
  "queue.deep",
  "tenant.deep",
  "trigger.failed",
  "breaker.opened",
  "breaker.closed",
] as const;
export type NotificationKind = (typeof notificationKinds)[number];

/** A row beside what it tells of. An older process passes on kinds that a newer one has raised. */
export interface Notification {
  readonly id: string;
  readonly kind: string;
  /** Whose it is; null: nobody's in particular. */
  readonly tenant: string | null;
  readonly queue: string | null;
  readonly at: Date;
  readonly data: unknown;
}

export interface Listener {
  readonly isActive: boolean;
  /** null: of all tenants. */
  readonly tenant: string | null;
  readonly kinds: readonly string[];
  /** null: of all queues, and of what belongs to none. */
  readonly queues: readonly string[] | null;
}

export function wantsNotification(listener: Listener, notification: Notification): boolean {
  const { tenant, queues } = listener;
  return (
    listener.isActive &&
    listener.kinds.includes(notification.kind) &&
    (tenant === null || tenant === notification.tenant) &&
    (queues === null || (notification.queue !== null && queues.includes(notification.queue)))
  );
}

/** The payload of a delivery's job: all that is needed to say the same thing again. */
export interface Delivery {
  /** Stays the same in every attempt, and when the job is reprocessed. */
  readonly delivery: string;
  readonly webhook: string;
  readonly notification: {
    readonly id: string;
    readonly kind: string;
    readonly tenant: string | null;
    readonly queue: string | null;
    readonly at: string;
    readonly data: unknown;
  };
}

export function createDelivery(
  delivery: string,
  webhook: string,
  { at, data, ...told }: Notification,
): Delivery {
  const notification = { ...told, at: at.toISOString(), data: withoutSecrets(data, "") };
  return { delivery, webhook, notification };
}

/** The same text for every attempt. */
export function bodyOf({ delivery, notification }: Delivery): string {
  const { id, kind, at, tenant, queue, data } = notification;
  return JSON.stringify({ id, delivery_id: delivery, kind, at, tenant, queue, data });
}

const withheld = "(withheld: it looks like it holds a secret)";

/** Handlers put anything into their errors, and this text leaves the house. */
function withoutSecrets(value: unknown, key: string): unknown {
  if (typeof value === "string")
    return secretValueKind(value, key.endsWith("_id")) === undefined ? value : withheld;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((inner) => withoutSecrets(inner, key));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, withoutSecrets(inner, name)]),
  );
}
