// Webhooks and notifications as the store knows them.

import type { JobMeta } from "../domain/job.ts";
import type { Listener, Notification } from "../domain/notification.ts";

export interface WebhookSettings {
  readonly name?: string;
  readonly url?: string;
  readonly kinds?: readonly string[];
  readonly queues?: readonly string[] | null;
  readonly isActive?: boolean;
}

export interface Webhook extends Listener {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  /** Failed attempts in a row, over all its deliveries. */
  readonly failures: number;
  readonly failingSince: Date | null;
  readonly lastError: string | null;
  readonly lastFailedAt: Date | null;
  readonly lastDeliveredAt: Date | null;
  readonly createdAt: Date;
}

export interface NewWebhook extends Required<Omit<WebhookSettings, "isActive">> {
  readonly id: string;
  readonly tenant: string | null;
  readonly signingKey: Buffer;
}

export interface DeliverableWebhook extends Webhook {
  /** The present one and, while secrets are being changed, the one before. */
  readonly signingKeys: readonly Buffer[];
}

/** What an attempt made of the webhook's health. */
export type HealthChange = "failing" | "recovered" | null;

/** A new job that tells one webhook of one notification; the key lets it be stored only once. */
export interface DeliveryJob {
  readonly id: string;
  readonly type: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly weight: number;
  readonly maxAttempts: number;
  /** JSON text. */
  readonly payload: string;
  /** The notification's id. */
  readonly correlationId: string;
  readonly key: string;
  readonly requestHash: string;
  readonly meta: JobMeta;
}

export interface Dispatched {
  readonly notifications: readonly Notification[];
  readonly jobs: readonly DeliveryJob[];
}

/** Decides who is told of what. */
export type DispatchPlan = (
  notifications: readonly Notification[],
  webhooks: readonly Webhook[],
) => readonly DeliveryJob[];

export interface FailedDelivery {
  readonly error: string;
  /** After so many failures in a row the webhook is marked failing. */
  readonly failingAfter: number;
  /** Nobody tries this receiver again before. */
  readonly waitMs: number;
}

interface By {
  readonly actor: string;
}

export interface WebhookStore {
  create(webhook: NewWebhook, by: By): Promise<Webhook>;
  list(): Promise<Webhook[]>;
  find(id: string): Promise<DeliverableWebhook | null>;
  update(id: string, settings: WebhookSettings, by: By): Promise<Webhook | null>;
  /** The key before stays good for so long. */
  rotate(id: string, signingKey: Buffer, overlapMs: number, by: By): Promise<Webhook | null>;
  delete(id: string, by: By): Promise<boolean>;
  noteDelivered(id: string): Promise<HealthChange>;
  noteFailed(id: string, failed: FailedDelivery): Promise<HealthChange>;
  /**
   * While a receiver fails, one delivery at a time tries it: 0 for whoever may, and for as long as it
   * says nobody else; milliseconds to wait for the others.
   */
  takeTurn(id: string, holdMs: number): Promise<number>;
}

export interface DispatchOptions {
  readonly limit: number;
  /** Where deliveries go. */
  readonly queueId: number;
  readonly plan: DispatchPlan;
  /** Younger ones are left to others. */
  readonly minAgeMs: number;
}

/** What a notifier asks of the store. */
export interface NotifierSession {
  /** One notification for each queue that has crossed its warning depth; answers how many have. */
  raiseDepths(): Promise<number>;
  /** Turns notifications into what the plan makes of them, both or neither. */
  dispatch(options: DispatchOptions): Promise<Dispatched>;
  /** What is there to do, of what is at least this old: to dispatch, and to deliver from this queue. */
  outlook(
    queue: string,
    minAgeMs: number,
  ): Promise<{ readonly notifications: boolean; readonly deliveries: boolean }>;
  close(): Promise<void>;
}
