// From what a caller says about a trigger to settings that may be stored: all rules are checked here.

import type { Config } from "../config.ts";
import { checkOptions } from "../domain/check-options.ts";
import { type MissedSlots, missedSlotPolicies } from "../domain/due-slots.ts";
import { MillraceError } from "../domain/errors.ts";
import { payloadError, validatePayload } from "../domain/payload-rules.ts";
import { isVersion } from "../domain/payload-version.ts";
import { isPlain } from "../domain/plain-object.ts";
import { weightOf } from "../domain/priority.ts";
import { createSchedule } from "../domain/schedule.ts";
import { payloadOf, type Trigger, type TriggerSettings, triggerTypes } from "../domain/trigger.ts";
import { deliveryQueue } from "../manager/notifier.ts";
import { type AnyJobDefinition, checkName, checkNumber } from "../worker/job-definition.ts";
import { longest } from "./new-job.ts";

interface CommonOptions {
  readonly name: string;
  readonly tenant?: string;
  readonly enabled?: boolean;
  /** A definition, or `jobType` and `jobQueue` when it is not at hand. */
  readonly job?: AnyJobDefinition;
  readonly jobType?: string;
  readonly jobQueue?: string;
  readonly priority?: string | null;
  readonly maxAttempts?: number | null;
  readonly maxRuntimeMs?: number | null;
  readonly expiresInMs?: number | null;
  readonly payload?: unknown;
  /** The definition's, or what the payload itself says. */
  readonly payloadVersion?: string | null;
}

export interface TimeTriggerOptions extends CommonOptions {
  readonly type: "TIME";
  readonly cron: string;
  /** An IANA name; UTC when left out. */
  readonly timeZone?: string;
  readonly missedSlots?: MissedSlots;
  readonly maxCatchUp?: number;
}

export interface QueueTriggerOptions extends CommonOptions {
  readonly type: "QUEUE";
  readonly queue: string;
  readonly batchSize?: number;
  readonly pollingIntervalMs?: number;
  readonly onArrival?: boolean;
}

export type TriggerOptions = TimeTriggerOptions | QueueTriggerOptions;

/** What may be changed later: everything but type and tenant. */
export type TriggerChanges = Partial<
  Omit<TimeTriggerOptions, "type" | "tenant"> & Omit<QueueTriggerOptions, "type" | "tenant">
>;

/** Options of either type, as callers without types may give them. */
export type AnyTriggerOptions = TriggerChanges & {
  readonly type?: string;
  readonly tenant?: string;
  readonly category?: string | null;
};

const timeOnly = ["cron", "timeZone", "missedSlots", "maxCatchUp"] as const;
const queueOnly = ["queue", "batchSize", "pollingIntervalMs", "onArrival"] as const;
const longestIntervalMs = 86_400_000;

const common = "name tenant enabled type jobType jobQueue priority maxAttempts";
const ofJobs = "maxRuntimeMs expiresInMs category payload payloadVersion";
const known = new Set([...`${common} ${ofJobs}`.split(" "), ...timeOnly, ...queueOnly]);
const given = new Set([...known, "job"]);

/** The definition's own settings, unless the trigger says otherwise. What is undefined is not said. */
export function withDefinition(said: AnyTriggerOptions): AnyTriggerOptions {
  checkOptions("triggers", said, given, "TRIGGER_INVALID");
  const { job, ...options } = Object.fromEntries(
    Object.entries(said).filter(([, value]) => value !== undefined),
  ) as AnyTriggerOptions;
  if (job === undefined) return options;
  if (typeof job?.type !== "string" || typeof job.queue !== "string")
    throw new MillraceError("TRIGGER_INVALID", "job must be what defineJob has made.");
  return {
    jobType: job.type,
    jobQueue: job.queue,
    priority: job.priority ?? null,
    maxAttempts: job.maxAttempts ?? null,
    maxRuntimeMs: job.maxRuntimeMs ?? null,
    expiresInMs: job.expiresInMs ?? null,
    category: job.category ?? null,
    payloadVersion: job.payloadVersion ?? null,
    ...options,
  };
}

/** What a trigger is now, said as options, so that changes can be laid over it. */
export function optionsOf(trigger: Trigger): AnyTriggerOptions {
  const shared = {
    name: trigger.name,
    tenant: trigger.tenant,
    enabled: trigger.enabled,
    jobType: trigger.jobType,
    jobQueue: trigger.jobQueue,
    priority: trigger.priority,
    maxAttempts: trigger.maxAttempts,
    maxRuntimeMs: trigger.maxRuntimeMs,
    expiresInMs: trigger.expiresInMs,
    category: trigger.category,
    payload: trigger.payload,
    payloadVersion: trigger.payloadVersion,
  };
  const { cron, timeZone, missedSlots, maxCatchUp } = trigger;
  const { queue, batchSize, pollingIntervalMs, onArrival } = trigger;
  return trigger.type === "TIME"
    ? {
        ...shared,
        type: "TIME",
        cron: cron ?? "",
        timeZone: timeZone ?? "",
        missedSlots,
        maxCatchUp,
      }
    : { ...shared, type: "QUEUE", queue: queue ?? "", batchSize, pollingIntervalMs, onArrival };
}

export function checkSettings(
  options: AnyTriggerOptions,
  queueIds: ReadonlyMap<string, number>,
  config: Config,
): TriggerSettings {
  checkOptions("triggers", options, known, "TRIGGER_INVALID");
  const type = oneOf("type", options.type, triggerTypes);
  refuseFields(options, type === "TIME" ? queueOnly : timeOnly, type);
  refuseOwn(options);
  const { categories } = config;
  const jobType = checkName("type", options.jobType);
  const idOf = (name: string | undefined) => queueIds.get(name ?? "") ?? null;
  const settings: TriggerSettings = {
    type,
    tenant: checkName("tenant", options.tenant ?? "default"),
    name: checkName("trigger's name", options.name),
    enabled: flag("enabled", options.enabled, true),
    cron: type === "TIME" ? text("cron", options.cron) : null,
    timeZone: type === "TIME" ? text("timeZone", options.timeZone ?? "UTC") : null,
    missedSlots: oneOf("missedSlots", options.missedSlots ?? "skip", missedSlotPolicies),
    maxCatchUp: checkNumber("maxCatchUp", options.maxCatchUp, 1, 1_000) ?? 100,
    queueId: type === "QUEUE" ? idOf(checkName("queue", options.queue)) : null,
    batchSize: checkNumber("batchSize", options.batchSize, 1, 1_000) ?? 1,
    pollingIntervalMs:
      checkNumber("pollingIntervalMs", options.pollingIntervalMs, 1_000, longestIntervalMs) ??
      30_000,
    onArrival: flag("onArrival", options.onArrival, false),
    jobType,
    jobQueueId: idOf(jobQueueOf(options)) ?? 0,
    priority: options.priority ?? null,
    weight: weightOf(options.priority ?? undefined, config.priorities),
    maxAttempts: numberOrNone("maxAttempts", options.maxAttempts, 1_000),
    maxRuntimeMs: numberOrNone("maxRuntimeMs", options.maxRuntimeMs, 2_147_483_647),
    expiresInMs: numberOrNone("expiresInMs", options.expiresInMs, longest),
    category: categories.ofJob(jobType, options.category ?? undefined, "TRIGGER_INVALID") ?? null,
    payload: options.payload ?? {},
    payloadVersion: versionOrNone(options.payloadVersion),
  };
  if (settings.cron !== null) createSchedule(settings.cron, settings.timeZone ?? "");
  refuseLoop(settings);
  samplePayload(settings, config);
  return settings;
}

/** What a job of this trigger will carry; checked as any payload is. */
export function samplePayload(settings: TriggerSettings, config: Config): unknown {
  const { payload, category, type } = settings;
  // Of a Date, a Map or the like only its own fields would be left.
  const isObject = typeof payload === "object" && payload !== null && isPlain(payload);
  if (!isObject && (type === "QUEUE" || category !== null))
    throw new MillraceError(
      "TRIGGER_INVALID",
      "The payload must be a plain object: fields are added to it.",
    );
  const id = "00000000-0000-7000-8000-000000000000";
  const items = type === "QUEUE" ? { items: Array(settings.batchSize).fill(id) } : {};
  const sample = payloadOf(settings, { id, key: `trigger:${id}`, ...items });
  const check = validatePayload(sample, {
    category: category ?? undefined,
    categories: config.categories,
    limits: config.payloadLimits,
  });
  if (!check.ok) throw payloadError(check.errors);
  return sample;
}

export const jobQueueOf = ({ jobQueue }: AnyTriggerOptions): string =>
  checkName("queue", jobQueue === undefined ? "default" : jobQueue);

/** Deliveries to webhooks are made, run and ended by Millrace alone. */
function refuseOwn({ queue, jobQueue }: AnyTriggerOptions): void {
  if (queue !== deliveryQueue && jobQueue !== deliveryQueue) return;
  throw new MillraceError("TRIGGER_INVALID", `The queue "${deliveryQueue}" is Millrace's own.`);
}

/** A trigger that feeds its own queue would never come to rest. */
function refuseLoop({ queueId, jobQueueId }: TriggerSettings): void {
  if (queueId === null || queueId !== jobQueueId) return;
  const problem = "A trigger's jobs must go to another queue than the one it takes items from.";
  throw new MillraceError("TRIGGER_INVALID", problem);
}

function refuseFields(options: AnyTriggerOptions, names: readonly string[], type: string): void {
  const given = names.find((name) => options[name as keyof AnyTriggerOptions] !== undefined);
  if (given === undefined) return;
  throw new MillraceError("TRIGGER_INVALID", `A trigger of the type ${type} has no "${given}".`);
}

function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new MillraceError("TRIGGER_INVALID", `${name} must be one of ${allowed.join(", ")}.`);
}

function flag(name: string, value: unknown, otherwise: boolean): boolean {
  if (value === undefined || typeof value === "boolean") return value ?? otherwise;
  throw new MillraceError("TRIGGER_INVALID", `${name} must be true or false.`);
}

function text(name: string, value: unknown): string {
  if (typeof value === "string" && value.length <= 200) return value;
  throw new MillraceError("TRIGGER_INVALID", `${name} must be a text of at most 200 characters.`);
}

const numberOrNone = (name: string, value: number | null | undefined, max: number) =>
  checkNumber(name, value ?? undefined, 1, max) ?? null;

function versionOrNone(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (isVersion(value)) return value;
  throw new MillraceError("TRIGGER_INVALID", "payloadVersion must be a version such as 1.0.");
}
