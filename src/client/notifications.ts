// Runs what tells the world: the notifier, and a worker for deliveries. Any number of processes may.

import type { Config } from "../config.ts";
import { checkOptions } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Delivery } from "../domain/notification.ts";
import {
  type BackoffOptions,
  defaultRetryPolicy,
  exponentialBackoff,
  type RetryPolicy,
} from "../domain/retry-policy.ts";
import { Deliverer } from "../manager/deliverer.ts";
import { createNotifier, deliveryQueue, deliveryType } from "../manager/notifier.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Loop, LoopReport } from "../runtime/loop.ts";
import type { Store } from "../store/store.ts";
import { type AnyJobDefinition, checkNumber, defineJob } from "../worker/job-definition.ts";
import type { Worker } from "../worker/worker.ts";
import type { Workers } from "./workers.ts";

export interface NotificationOptions {
  /** Deliveries under way at once. */
  readonly concurrency?: number;
  /** One deadline for name, connection, request and answer. */
  readonly timeoutMs?: number;
  readonly maxAttempts?: number;
  readonly retry?: RetryPolicy | BackoffOptions;
  /** After so many failures in a row a webhook is marked failing. */
  readonly failingAfter?: number;
}

interface Parts {
  readonly store: Store;
  readonly config: Config;
  readonly workers: Workers;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const fields = new Set(["concurrency", "timeoutMs", "maxAttempts", "retry", "failingAfter"]);
const defaults = { concurrency: 10, timeoutMs: 10_000, failingAfter: 10 };

export class Notifications {
  readonly #parts: Parts;
  #running: Promise<{ notifier: Loop; worker: Worker; forget: () => void }> | null = null;
  /** A worker for deliveries alone: a manager or a worker of this process has made or found some. */
  #delivering: Promise<Worker> | null = null;
  #stopped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Starts once; further calls wait for the first. */
  async start(options: NotificationOptions = {}): Promise<void> {
    if (this.#stopped) throw new MillraceError("STOPPED");
    checkOptions("notifications", options, fields);
    this.#running ??= this.#start(options).catch((error: unknown) => {
      this.#running = null;
      throw error;
    });
    await this.#running;
    if (this.#stopped) throw new MillraceError("STOPPED");
  }

  async report(): Promise<LoopReport | null> {
    return (await this.#running)?.notifier.report ?? null;
  }

  /** Runs deliveries from now on, with the defaults; whoever dispatches does so in its own process. */
  readonly deliver = (): void => {
    if (this.#stopped || this.#running !== null || this.#delivering !== null) return;
    this.#delivering = this.#work({});
    this.#delivering.catch((error: unknown) => {
      this.#delivering = null;
      if (!this.#stopped)
        this.#parts.events.emit("service.failed", { service: "deliveries", error });
    });
  };

  async stop(): Promise<void> {
    await this.#stopDelivering();
    const running = await this.#running?.catch(() => null);
    this.#running = null;
    if (running === null || running === undefined) return;
    running.forget();
    await Promise.all([running.notifier.stop(), running.worker.stop()]);
  }

  /** For good: the instance is stopping. */
  async close(): Promise<void> {
    this.#stopped = true;
    await this.stop();
  }

  async #start(options: NotificationOptions) {
    const { workers, config, store } = this.#parts;
    const maxAttempts = checkNumber("maxAttempts", options.maxAttempts, 1, 1000);
    const notifier = createNotifier({
      ...this.#parts,
      session: store.notifier(),
      isWanted: async () => true,
      intervalMs: config.pollMs,
      maxAttempts,
    });
    const worker = await this.#work(options);
    await this.#stopDelivering();
    const forget = workers.onNotice((notice) => {
      if (notice.kind === "notifications") notifier.wake();
    });
    await notifier.start();
    return { notifier, worker, forget };
  }

  async #work(options: NotificationOptions): Promise<Worker> {
    const concurrency = options.concurrency ?? defaults.concurrency;
    return this.#parts.workers.start([this.#define(options)], { concurrency });
  }

  async #stopDelivering(): Promise<void> {
    const worker = await this.#delivering?.catch(() => null);
    this.#delivering = null;
    await worker?.stop();
  }

  #define(options: NotificationOptions): AnyJobDefinition {
    const { store, config, clock, random, events } = this.#parts;
    const concurrency = options.concurrency ?? defaults.concurrency;
    if (
      options.retry === null ||
      !["undefined", "object", "function"].includes(typeof options.retry)
    )
      throw new MillraceError("OPTION_INVALID", "retry must be a policy or its numbers.");
    const retry =
      typeof options.retry === "object"
        ? exponentialBackoff(options.retry)
        : (options.retry ?? defaultRetryPolicy);
    const deliverer = new Deliverer({
      webhooks: store.webhooks,
      rules: config.webhooks,
      timeoutMs: checkNumber("timeoutMs", options.timeoutMs, 1, 600_000) ?? defaults.timeoutMs,
      failingAfter:
        checkNumber("failingAfter", options.failingAfter, 1, 1_000_000) ?? defaults.failingAfter,
      retry,
      // One receiver that takes its time leaves half of the room to others.
      perWebhook: Math.max(1, Math.floor(concurrency / 2)),
      clock,
      random,
      events,
    });
    return defineJob({
      type: deliveryType,
      queue: deliveryQueue,
      retry,
      run: ({ payload, attempt, signal }) =>
        deliverer.deliver(payload as Delivery, { attempt, signal }),
    });
  }
}
