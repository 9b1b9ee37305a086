// Triggers on the facade: `millrace.triggers`.

import type { Config } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import type { ClaimedJob } from "../domain/job.ts";
import { createSchedule, slotsBetween } from "../domain/schedule.ts";
import type { Trigger } from "../domain/trigger.ts";
import type { Clock } from "../runtime/clock.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type { Store } from "../store/store.ts";
import type { ItemOutcome, TriggerFilter } from "../store/triggers.ts";
import { checkName, checkNumber, type JobDefinition } from "../worker/job-definition.ts";
import type { Calls } from "./calls.ts";
import { checkId } from "./check-id.ts";
import { validateSchema } from "./new-job.ts";
import type { QueueCache } from "./queue-cache.ts";
import {
  type AnyTriggerOptions,
  checkSettings,
  optionsOf,
  samplePayload,
  type TriggerChanges,
  type TriggerOptions,
  withDefinition,
} from "./trigger-settings.ts";

interface Parts {
  readonly store: Store;
  readonly config: Config;
  readonly queues: QueueCache;
  readonly calls: Calls;
  readonly clock: Clock;
  readonly random: () => number;
}

type Definition = JobDefinition<unknown, unknown, unknown>;
const farAway = new Date(8_640_000_000_000_000);

export class Triggers {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async create(options: TriggerOptions): Promise<Trigger> {
    const { calls, config, store } = this.#parts;
    const given = withDefinition(options);
    return calls.track(async () => {
      const named = await this.#queueIds(given, given.tenant ?? "default");
      const settings = checkSettings(given, named, config);
      await validateJob(options, samplePayload(settings, config));
      return store.triggers.create(uuidv7(), settings);
    });
  }

  async get(id: string): Promise<Trigger | null> {
    checkId("trigger", id);
    return this.#parts.calls.track(() => this.#parts.store.triggers.find(id));
  }

  async list(filter: TriggerFilter = {}, limit = 1_000): Promise<Trigger[]> {
    return this.#parts.calls.track(() => this.#parts.store.triggers.list(filter, limit));
  }

  /** Only what is named changes. Changing the times, like enabling, starts from now. */
  async update(id: string, changes: TriggerChanges): Promise<Trigger> {
    checkId("trigger", id);
    const { calls, config, store } = this.#parts;
    const given = withDefinition(changes);
    if (given.type !== undefined || given.tenant !== undefined)
      throw new MillraceError("TRIGGER_INVALID", "A trigger keeps its type and its tenant.");
    return calls.track(async () => {
      const tenant = (await store.triggers.find(id))?.tenant ?? "default";
      const named = await this.#queueIds(given, tenant);
      return store.triggers.update(id, (trigger) => {
        const known = new Map(named);
        if (trigger.queue !== null && trigger.queueId !== null)
          known.set(trigger.queue, trigger.queueId);
        known.set(trigger.jobQueue, trigger.jobQueueId);
        // Another type may be of another category.
        const category = given.jobType === undefined ? {} : { category: null };
        return checkSettings({ ...optionsOf(trigger), ...category, ...given }, known, config);
      });
    });
  }

  async enable(id: string): Promise<Trigger> {
    return this.update(id, { enabled: true });
  }

  async disable(id: string): Promise<Trigger> {
    return this.update(id, { enabled: false });
  }

  /** Jobs it has made stay; items they hold are settled as ever. */
  async delete(id: string): Promise<void> {
    checkId("trigger", id);
    const deleted = await this.#parts.calls.track(() => this.#parts.store.triggers.delete(id));
    if (!deleted) throw new MillraceError("TRIGGER_NOT_FOUND", `There is no trigger ${id}.`);
  }

  /** The next times of an expression, or of a trigger as it was read. */
  preview(
    schedule: { readonly cron: string | null; readonly timeZone?: string | null },
    options: { readonly count?: number; readonly after?: Date } = {},
  ): Date[] {
    const count = checkNumber("count", options.count, 1, 1_000) ?? 5;
    const { cron, timeZone } = schedule;
    if (cron === null) return [];
    const after = options.after ?? this.#parts.clock.now();
    return slotsBetween(createSchedule(cron, timeZone ?? "UTC"), after, farAway, count);
  }

  /**
   * Settles one item of the job that the calling handler runs, before the job itself ends. Answers
   * what became of it: completed, retried, dead, released, or cancelled.
   */
  async settleItem(
    job: Pick<ClaimedJob, "id" | "token">,
    itemId: string,
    outcome: ItemOutcome,
  ): Promise<string> {
    checkId("job", itemId);
    const { calls, store, random } = this.#parts;
    const { id: jobId, token } = job;
    return calls.track(() =>
      store.triggers.settleItem({ itemId, jobId, token, outcome, random: random() }),
    );
  }

  async #queueIds(
    { type, queue, jobQueue }: AnyTriggerOptions,
    tenant: string,
  ): Promise<Map<string, number>> {
    const names = [queue, jobQueue ?? (type === undefined ? undefined : "default")];
    const ids = new Map<string, number>();
    for (const name of new Set(names.flatMap((one) => one ?? []))) {
      const { id } = await this.#parts.queues.resolve(tenant, checkName("queue", name));
      ids.set(name, id);
    }
    return ids;
  }
}

async function validateJob({ job }: TriggerOptions, payload: unknown): Promise<void> {
  if (job !== undefined) await validateSchema(job as unknown as Definition, payload);
}
