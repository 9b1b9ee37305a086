// Who is told of what. Secrets are made here, shown once, and stored as what signs with them.

import { randomBytes } from "node:crypto";
import { checkOptions } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import {
  createDelivery,
  type NotificationKind,
  notificationKinds,
} from "../domain/notification.ts";
import { parseWebhookUrl, type WebhookRules } from "../domain/webhook-url.ts";
import { deliveryQueue, deliveryType } from "../manager/notifier.ts";
import type { Clock } from "../runtime/clock.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import { signingKeyOf } from "../runtime/webhook-signature.ts";
import type { Enqueued } from "../store/store.ts";
import type { Webhook, WebhookStore } from "../store/webhook.ts";
import { checkName, checkNumber, defineJob } from "../worker/job-definition.ts";
import type { Calls } from "./calls.ts";
import type { Intake } from "./intake.ts";

export interface NewWebhookOptions {
  readonly url: string;
  readonly name?: string;
  /** All of them unless told. */
  readonly kinds?: readonly NotificationKind[];
  /** Only of these queues. */
  readonly queues?: readonly string[] | null;
  /** Only this tenant's; without it, of all tenants. */
  readonly tenant?: string;
}

export interface WebhookChanges {
  readonly url?: string;
  readonly name?: string;
  readonly kinds?: readonly NotificationKind[];
  readonly queues?: readonly string[] | null;
  readonly isActive?: boolean;
}

/** The only time the secret is shown. */
export type WebhookWithSecret = Webhook & { readonly secret: string };

interface Parts {
  readonly store: WebhookStore;
  readonly rules: WebhookRules;
  readonly calls: Calls;
  readonly intake: Intake;
  readonly clock: Clock;
}

const dayMs = 86_400_000;
const newFields = new Set(["url", "name", "kinds", "queues", "tenant"]);
const rotation = new Set(["overlapMs"]);
const changeable = new Set(["url", "name", "kinds", "queues", "isActive"]);
const testDelivery = defineJob({ type: deliveryType, queue: deliveryQueue, maxAttempts: 1 });

export class Webhooks {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async create(options: NewWebhookOptions, actor = "api"): Promise<WebhookWithSecret> {
    checkOptions("webhooks", options, newFields);
    const by = checkActor(actor);
    const { store, calls } = this.#parts;
    const secret = newSecret();
    const url = this.#checkUrl(options.url);
    const webhook = {
      id: uuidv7(),
      tenant: options.tenant === undefined ? null : checkName("tenant", options.tenant),
      name: checkName("name", options.name ?? new URL(url).hostname),
      url,
      kinds: checkKinds(options.kinds ?? notificationKinds),
      queues: checkQueues(options.queues ?? null),
      signingKey: signingKeyOf(secret),
    };
    const made = await calls.track(() => store.create(webhook, by));
    return { ...made, secret };
  }

  async list(): Promise<Webhook[]> {
    return this.#parts.calls.track(() => this.#parts.store.list());
  }

  async update(id: string, changes: WebhookChanges, actor = "api"): Promise<Webhook> {
    checkOptions("a webhook's changes", changes, changeable);
    const by = checkActor(actor);
    const { store, calls } = this.#parts;
    const { url, name, kinds, queues, isActive } = changes;
    if (isActive !== undefined && typeof isActive !== "boolean")
      throw new MillraceError("OPTION_INVALID", "isActive must be true or false.");
    const settings = {
      ...(url === undefined ? {} : { url: this.#checkUrl(url) }),
      ...(name === undefined ? {} : { name: checkName("name", name) }),
      ...(kinds === undefined ? {} : { kinds: checkKinds(kinds) }),
      ...(queues === undefined ? {} : { queues: checkQueues(queues) }),
      ...(isActive === undefined ? {} : { isActive }),
    };
    return found(await calls.track(() => store.update(checkId(id), settings, by)));
  }

  /** A new secret; the one before signs as well for a day, or as long as told. */
  async rotateSecret(
    id: string,
    options: { readonly overlapMs?: number } = {},
    actor = "api",
  ): Promise<WebhookWithSecret> {
    checkOptions("a change of secrets", options, rotation);
    const by = checkActor(actor);
    const { store, calls } = this.#parts;
    const overlap = checkNumber("overlapMs", options.overlapMs, 0, 30 * dayMs) ?? dayMs;
    const secret = newSecret();
    const key = signingKeyOf(secret);
    const rotated = await calls.track(() => store.rotate(checkId(id), key, overlap, by));
    return { ...found(rotated), secret };
  }

  /** Deliveries that are still on their way end without being made. */
  async delete(id: string, actor = "api"): Promise<void> {
    const by = checkActor(actor);
    const { store, calls } = this.#parts;
    if (!(await calls.track(() => store.delete(checkId(id), by)))) throw notFound();
  }

  /** Sends a notification of the kind `webhook.test`; `waitFor` the job to see what came of it. */
  async test(id: string): Promise<Enqueued> {
    const { store, calls, intake, clock } = this.#parts;
    const webhook = found(await calls.track(() => store.find(checkId(id))));
    const notification = {
      ...{ id: uuidv7(), kind: "webhook.test", tenant: webhook.tenant, queue: null },
      ...{ at: clock.now(), data: { webhook_id: webhook.id } },
    };
    const delivery = createDelivery(uuidv7(), webhook.id, notification);
    return intake.enqueue(testDelivery, delivery, { tenant: webhook.tenant ?? "default" });
  }

  #checkUrl(url: unknown): string {
    return parseWebhookUrl(url, this.#parts.rules).href;
  }
}

/** 256 random bits, in a form that the payload rules recognise and refuse. */
const newSecret = () => `whsec_${randomBytes(32).toString("hex")}`;

function checkKinds(kinds: readonly string[]): readonly string[] {
  const known: readonly string[] = notificationKinds;
  if (Array.isArray(kinds) && kinds.length > 0 && kinds.every((kind) => known.includes(kind)))
    return [...new Set<string>(kinds)];
  throw new MillraceError("OPTION_INVALID", `kinds must be some of ${known.join(", ")}.`);
}

function checkQueues(queues: readonly string[] | null): readonly string[] | null {
  if (queues === null) return null;
  if (Array.isArray(queues) && queues.length > 0 && queues.length <= 100)
    return queues.map((name) => checkName("queue", name));
  throw new MillraceError("OPTION_INVALID", "queues must be 1 to 100 names, or null for all.");
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function checkId(id: string): string {
  if (typeof id === "string" && uuid.test(id)) return id;
  throw notFound();
}

const checkActor = (actor: string) => ({ actor: checkName("actor", actor) });

function found<W extends Webhook>(webhook: W | null): W {
  if (webhook === null) throw notFound();
  return webhook;
}

const notFound = () => new MillraceError("WEBHOOK_NOT_FOUND");
