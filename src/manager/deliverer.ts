// Makes one attempt of one delivery, and keeps account of the webhook's health.

import { RateLimitedError, RetryableError } from "../domain/error-class.ts";
import { bodyOf, type Delivery } from "../domain/notification.ts";
import type { WebhookRules } from "../domain/webhook-url.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { signatureHeaders } from "../runtime/webhook-signature.ts";
import type { HealthChange, WebhookStore } from "../store/webhook.ts";
import { type PostResult, postWebhook } from "./webhook-post.ts";

export interface DelivererOptions {
  readonly webhooks: WebhookStore;
  readonly rules: WebhookRules;
  readonly timeoutMs: number;
  /** After so many failures in a row a webhook is marked failing. */
  readonly failingAfter: number;
  readonly clock: Clock;
  readonly events: Events;
}

export interface DeliveryAttempt {
  readonly attempt: number;
  readonly signal: AbortSignal;
}

export type DeliveryResult =
  | { readonly delivered: true; readonly status: number }
  | { readonly delivered: false; readonly reason: "webhook_gone" | "webhook_inactive" };

// The owner of a webhook learns no more than this, or he could look around where he may not go.
const phrases = {
  url_refused: "The webhook's URL is not allowed.",
  address_refused: "The receiver could not be reached, or its address is not allowed.",
  unreachable: "The receiver could not be reached, or its address is not allowed.",
  tls: "The receiver's certificate or TLS was refused.",
  timeout: "The receiver did not answer in time.",
} as const;

export class Deliverer {
  readonly #options: DelivererOptions;

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** Resolves when the receiver has said 2xx, or when there is nobody to tell any more. */
  async deliver(delivery: Delivery, { attempt, signal }: DeliveryAttempt): Promise<DeliveryResult> {
    const { webhooks, clock, events, failingAfter } = this.#options;
    const webhook = await webhooks.find(delivery.webhook);
    if (webhook === null) return { delivered: false, reason: "webhook_gone" };
    if (!webhook.isActive) return { delivered: false, reason: "webhook_inactive" };
    const body = bodyOf(delivery);
    const signing = { keys: webhook.signingKeys, now: clock.now() };
    const headers = {
      "content-type": "application/json",
      "user-agent": "Millrace",
      ...signatureHeaders(delivery.delivery, body, signing),
    };
    const result = await postWebhook({ url: webhook.url, headers, body, signal }, this.#options);
    const { id: notification, kind } = delivery.notification;
    const about = { webhook: webhook.id, delivery: delivery.delivery, notification, kind, attempt };
    if (result.kind === "answered" && result.status >= 200 && result.status < 300) {
      await this.#note(webhook.id, webhooks.noteDelivered(webhook.id));
      events.emit("webhook.delivered", { ...about, status: result.status });
      return { delivered: true, status: result.status };
    }
    const failure = this.#failureOf(result);
    await this.#note(webhook.id, webhooks.noteFailed(webhook.id, failure.message, failingAfter));
    const reason = result.kind === "answered" ? "status" : result.reason;
    const status = result.kind === "answered" ? result.status : null;
    events.emit("webhook.delivery_failed", { ...about, reason, status });
    throw failure;
  }

  #failureOf(result: PostResult): Error {
    if (result.kind === "failed") return new RetryableError(phrases[result.reason]);
    const message = `The receiver answered ${result.status}.`;
    const retryAfterMs = this.#retryAfterMs(result.retryAfter);
    return retryAfterMs === undefined
      ? new RetryableError(message)
      : new RateLimitedError(message, { retryAfterMs });
  }

  #retryAfterMs(header: string | undefined): number | undefined {
    if (header === undefined) return undefined;
    const ms = /^\d{1,9}$/.test(header)
      ? Number(header) * 1000
      : Date.parse(header) - this.#options.clock.now().getTime();
    return Number.isNaN(ms) ? undefined : Math.max(0, ms);
  }

  /** The account may fail; what was delivered is delivered all the same. */
  async #note(webhook: string, noting: Promise<HealthChange>): Promise<void> {
    const { events, failingAfter } = this.#options;
    try {
      const change = await noting;
      if (change === "failing") events.emit("webhook.failing", { webhook, failures: failingAfter });
      if (change === "recovered") events.emit("webhook.recovered", { webhook });
    } catch (error) {
      events.emit("service.failed", { service: "webhook health", error });
    }
  }
}
