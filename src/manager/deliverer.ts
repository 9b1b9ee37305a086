// Makes one attempt of one delivery, and keeps account of the webhook's health.
//
// Deliveries to a receiver that fails take turns, and those to a slow one leave room for others: whoever
// has to wait spends no attempt.

import {
  classify,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "../domain/error-class.ts";
import { bodyOf, type Delivery } from "../domain/notification.ts";
import type { RetryPolicy } from "../domain/retry-policy.ts";
import type { WebhookRules } from "../domain/webhook-url.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { signatureHeaders } from "../runtime/webhook-signature.ts";
import type { DeliverableWebhook, HealthChange, WebhookStore } from "../store/webhook.ts";
import { type PostResult, postWebhook } from "./webhook-post.ts";

export interface DelivererOptions {
  readonly webhooks: WebhookStore;
  readonly rules: WebhookRules;
  readonly timeoutMs: number;
  /** After so many failures in a row a webhook is marked failing. */
  readonly failingAfter: number;
  /** How long a receiver is left alone after so many failures in a row. */
  readonly retry: RetryPolicy;
  /** Requests under way to one receiver that is slow, from this process. */
  readonly perWebhook: number;
  readonly clock: Clock;
  readonly random: () => number;
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

/** A receiver that has been down for longer has missed it. */
const longestWaitMs = 86_400_000;
const longestPauseMs = 300_000;
/** For whoever finds that others fill what this process has for one receiver. */
const crowdedMs = 1_000;
/** A turn outlasts its request by this, in case nobody can say how it ended. */
const turnSlackMs = 1_000;

/** A receiver that takes longer may not have all of this process. */
const slowMs = 1_000;

/** Date.parse makes a date of nearly anything. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

interface Request {
  readonly startedAt: number;
}

/** Requests to one receiver: those under way, oldest first, and how long the last one took. */
interface Traffic {
  readonly underWay: Set<Request>;
  lastMs: number;
}

export class Deliverer {
  readonly #options: DelivererOptions;
  readonly #traffic = new Map<string, Traffic>();

  constructor(options: DelivererOptions) {
    this.#options = options;
  }

  /** Resolves when the receiver has said 2xx, or when there is nobody to tell any more. */
  async deliver(delivery: Delivery, attempt: DeliveryAttempt): Promise<DeliveryResult> {
    const webhook = await this.#options.webhooks.find(delivery.webhook);
    if (webhook === null) return { delivered: false, reason: "webhook_gone" };
    if (!webhook.isActive) return { delivered: false, reason: "webhook_inactive" };
    // Somebody who tests wants to know now.
    const takesTurns = delivery.notification.kind !== "webhook.test";
    const leave = this.#enter(webhook.id, takesTurns);
    try {
      if (takesTurns && webhook.failures > 0) await this.#takeTurn(delivery, webhook.id);
      return await this.#attempt(delivery, webhook, attempt);
    } finally {
      leave();
    }
  }

  #enter(webhook: string, takesTurns: boolean): () => void {
    const { perWebhook, clock, random } = this.#options;
    const now = clock.monotonic();
    const traffic = this.#traffic.get(webhook) ?? { underWay: new Set<Request>(), lastMs: 0 };
    const [oldest = { startedAt: now }] = traffic.underWay;
    const isSlow = Math.max(traffic.lastMs, now - oldest.startedAt) > slowMs;
    if (takesTurns && isSlow && traffic.underWay.size >= perWebhook)
      throw new Snooze(crowdedMs * (1 + random()), "The receiver is busy with others.");
    const request = { startedAt: now };
    traffic.underWay.add(request);
    this.#traffic.set(webhook, traffic);
    return () => {
      traffic.underWay.delete(request);
      traffic.lastMs = clock.monotonic() - request.startedAt;
    };
  }

  async #takeTurn(delivery: Delivery, webhook: string): Promise<void> {
    const { webhooks, timeoutMs, clock, random } = this.#options;
    const waitMs = await webhooks.takeTurn(webhook, timeoutMs + turnSlackMs);
    if (waitMs === 0) return;
    const ageMs = clock.now().getTime() - Date.parse(delivery.notification.at);
    if (ageMs > longestWaitMs)
      throw new NonRetryableError("The receiver has failed for longer than a delivery waits.");
    // Spread, so that a receiver which is back is not run over.
    throw new Snooze(waitMs * (1 + random() / 2), "The receiver fails; others try it first.");
  }

  async #attempt(
    delivery: Delivery,
    webhook: DeliverableWebhook,
    { attempt, signal }: DeliveryAttempt,
  ): Promise<DeliveryResult> {
    const { webhooks, clock, events } = this.#options;
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
    const failure = this.#failureOf(result, attempt);
    await this.#noteFailed(webhook, failure);
    const reason = result.kind === "answered" ? "status" : result.reason;
    const status = result.kind === "answered" ? result.status : null;
    events.emit("webhook.delivery_failed", { ...about, reason, status });
    throw failure;
  }

  #noteFailed(webhook: DeliverableWebhook, failure: Error): Promise<void> {
    const { webhooks, retry, random, failingAfter } = this.#options;
    const wantedMs: unknown = retry(classify(failure), webhook.failures + 1, random());
    const waitMs = typeof wantedMs === "number" ? Math.max(0, wantedMs || 0) : 0;
    const failed = {
      error: failure.message,
      failingAfter,
      waitMs: Math.min(waitMs, longestPauseMs),
    };
    return this.#note(webhook.id, webhooks.noteFailed(webhook.id, failed));
  }

  /** A receiver may ask for more patience than we have, not for less. */
  #failureOf(result: PostResult, attempt: number): Error {
    if (result.kind === "failed") return new RetryableError(phrases[result.reason]);
    const { retry, random } = this.#options;
    const message = `The receiver answered ${result.status}.`;
    const retryAfterMs = this.#retryAfterMs(result.retryAfter);
    const ownMs = retry({ class: "retryable" }, attempt, random());
    return retryAfterMs === undefined || retryAfterMs <= ownMs
      ? new RetryableError(message)
      : new RateLimitedError(message, { retryAfterMs });
  }

  #retryAfterMs(header = ""): number | undefined {
    if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
    if (!httpDate.test(header)) return undefined;
    return Date.parse(header) - this.#options.clock.now().getTime();
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
