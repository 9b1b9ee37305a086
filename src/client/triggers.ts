// Triggers on the facade: `millrace.triggers`.

import { isDeepStrictEqual } from "node:util";
import type { Config } from "../config.ts";
import { checkOptions } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { ClaimedJob } from "../domain/job.ts";
import { createSchedule, slotsBetween } from "../domain/schedule.ts";
import type { Trigger, TriggerSettings } from "../domain/trigger.ts";
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
  jobQueueOf,
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
const [firstDay, lastDay] = [new Date(0), new Date("9999-12-31T00:00:00Z")];
const previewOptions = new Set(["count", "after"]);
const filters = new Set(["tenant", "type", "name"]);

class PayloadMoved extends MillraceError {
  constructor(message: string) {
    super("TRIGGER_INVALID", message);
  }
}

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
    checkFilter(filter);
    const most = checkNumber("limit", limit, 1, 100_000) ?? 1_000;
    return this.#parts.calls.track(() => this.#parts.store.triggers.list(filter, most));
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
      const settingsOf = (trigger: Trigger) => changed(trigger, given, named, config);
      if (changes.job === undefined) return store.triggers.update(id, settingsOf);
      return this.#updateJob(id, changes, settingsOf);
    });
  }

  /** The job's schema is asked outside of the transaction, about what the change will find inside. */
  async #updateJob(
    id: string,
    changes: TriggerChanges,
    settingsOf: (trigger: Trigger) => TriggerSettings,
  ): Promise<Trigger> {
    const { config, store } = this.#parts;
    for (let tries = 1; ; tries++) {
      const seen = await store.triggers.find(id);
      if (seen === null) throw new MillraceError("TRIGGER_NOT_FOUND", `There is no trigger ${id}.`);
      const sample = samplePayload(settingsOf(seen), config);
      await validateJob(changes, sample);
      try {
        return await store.triggers.update(id, (trigger) => {
          const settings = settingsOf(trigger);
          if (isDeepStrictEqual(samplePayload(settings, config), sample)) return settings;
          throw new PayloadMoved("Others keep changing this trigger's payload.");
        });
      } catch (error) {
        if (!(error instanceof PayloadMoved) || tries === 5) throw error;
      }
    }
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
    checkOptions("a preview", options, previewOptions);
    if (typeof schedule !== "object" || schedule === null)
      throw new MillraceError("SCHEDULE_INVALID", "Give an expression as { cron, timeZone }.");
    const count = checkNumber("count", options.count, 1, 1_000) ?? 5;
    const { cron, timeZone } = schedule;
    if (cron === null) return [];
    const after = options.after ?? this.#parts.clock.now();
    if (!(after instanceof Date) || !(after >= firstDay && after < lastDay))
      throw new MillraceError("OPTION_INVALID", "after must be a Date from 1970 to 9999.");
    const zone = scheduleText("timeZone", timeZone ?? "UTC");
    const parsed = createSchedule(scheduleText("cron", cron), zone);
    return slotsBetween(parsed, after, farAway, count);
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
    checkId("job", jobId);
    if (typeof token?.claimId !== "string")
      throw new MillraceError("OPTION_INVALID", "Give the job as your handler got it.");
    return calls.track(() =>
      store.triggers.settleItem({ itemId, jobId, token, outcome, random: random() }),
    );
  }

  async #queueIds(given: AnyTriggerOptions, tenant: string): Promise<Map<string, number>> {
    const { type, queue, jobQueue } = given;
    const isNew = type !== undefined;
    const wanted = [
      ...(queue === undefined ? [] : [checkName("queue", queue)]),
      ...(jobQueue === undefined && !isNew ? [] : [jobQueueOf(given)]),
    ];
    const ids = new Map<string, number>();
    for (const name of new Set(wanted)) {
      ids.set(name, (await this.#parts.queues.resolve(tenant, name)).id);
    }
    return ids;
  }
}

function checkFilter(filter: TriggerFilter): void {
  checkOptions("a filter of triggers", filter, filters);
  for (const [name, value] of Object.entries(filter))
    if (value !== undefined) checkName(name, value);
}

function scheduleText(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw new MillraceError("SCHEDULE_INVALID", `${name} must be a text.`);
}

/** A trigger as it will be, with these changes laid over it. */
function changed(
  trigger: Trigger,
  given: AnyTriggerOptions,
  named: ReadonlyMap<string, number>,
  config: Config,
): TriggerSettings {
  const known = new Map(named);
  if (trigger.queue !== null && trigger.queueId !== null) known.set(trigger.queue, trigger.queueId);
  known.set(trigger.jobQueue, trigger.jobQueueId);
  // Another type may be of another category, and counts its versions anew.
  const ofType = given.jobType === undefined ? {} : { category: null, payloadVersion: null };
  return checkSettings({ ...optionsOf(trigger), ...ofType, ...given }, known, config);
}

async function validateJob({ job }: TriggerChanges, payload: unknown): Promise<void> {
  if (job !== undefined) await validateSchema(job as unknown as Definition, payload);
}
