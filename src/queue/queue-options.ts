// What every queue refuses in the same words, before anything of the call has happened.

import { MillraceError } from "../domain/errors.ts";
import { longestTimerMs } from "../runtime/clock.ts";
import type {
  DequeueManyOptions,
  DequeueOptions,
  EnqueueOptions,
  NewItem,
  Queue,
  QueueItem,
} from "./queue.ts";

const hundredYearsMs = 3_155_760_000_000;
const longestText = 1_000;

/** A delay in milliseconds; 0 when none is given. */
export function checkDelay(delayMs: number | undefined): number {
  if (delayMs === undefined) return 0;
  if (Number.isFinite(delayMs) && delayMs >= 0 && delayMs <= hundredYearsMs)
    return Math.ceil(delayMs);
  throw invalid("delayMs must be a number of milliseconds, from 0 to a hundred years.");
}

export function checkWhole(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw invalid(`${name} must be a whole number from ${least} on.`);
}

/** A limit such as maxInMemory; Infinity when none is given. */
export function checkLimit(name: string, limit: number | undefined): number {
  return limit === undefined ? Number.POSITIVE_INFINITY : checkWhole(name, limit, 1);
}

export function checkTime(name: string, ms: number): number {
  if (ms > 0 && ms <= longestTimerMs) return ms;
  throw invalid(`${name} must be a number of milliseconds, above 0 and below 25 days.`);
}

export function checkFunction(name: string, value: unknown): void {
  if (typeof value !== "function") throw invalid(`${name} must be a function.`);
}

export function checkQueue(queue: Pick<Queue<unknown>, "dequeueMany">): void {
  if (!isObject(queue) || typeof queue.dequeueMany !== "function")
    throw invalid("A queue is needed, such as createQueue() answers.");
}

/** Everything but whether the label is known. Answers the delay. */
export function checkEnqueue(options: EnqueueOptions): number {
  checkOptions(options);
  const { id, correlationId, priority } = options;
  if (id !== undefined) checkId(id);
  if (correlationId !== undefined) checkText("correlationId", correlationId);
  if (priority !== undefined && typeof priority !== "string")
    throw invalid("priority must be a label, such as high.");
  return checkDelay(options.delayMs);
}

export function checkBatch<T>(items: readonly NewItem<T>[]): void {
  if (!Array.isArray(items)) throw invalid("enqueueMany takes a list of items.");
  for (const item of items) checkEnqueue(item);
}

export function checkWait(options: DequeueOptions): void {
  checkOptions(options);
  const { timeoutMs, signal } = options;
  // Infinity waits as long as it takes.
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs >= 0))
    throw invalid("timeoutMs must be a number of milliseconds from 0 on.");
  if (signal !== undefined && !isSignal(signal)) throw invalid("signal must be an AbortSignal.");
}

/** Answers how many to take at most. */
export function checkTake(options: DequeueManyOptions): number {
  checkWait(options);
  return checkWhole("max", options.max, 1);
}

export function checkLimitOf(options: { readonly limit?: number }): number | undefined {
  checkOptions(options);
  return options.limit === undefined ? undefined : checkWhole("limit", options.limit, 0);
}

export function checkTaken(item: QueueItem<unknown>): void {
  const isTaken =
    isObject(item) &&
    typeof item.id === "string" &&
    typeof item.priority === "string" &&
    Number.isInteger(item.sequence) &&
    Number.isInteger(item.attempt);
  if (!isTaken) throw invalid("What is settled must be an item that was taken from this queue.");
}

export function checkRelease(item: QueueItem<unknown>, options: { delayMs?: number }): number {
  checkTaken(item);
  checkOptions(options);
  return checkDelay(options.delayMs);
}

/** Answers the error's text. */
export function checkBurial(item: QueueItem<unknown>, error: string | Error): string {
  checkTaken(item);
  const text = error instanceof Error ? error.message : error;
  if (typeof text === "string") return text;
  throw invalid("An item is buried with an error, or with the text of one.");
}

export function checkId(id: string): string {
  return checkText("id", id);
}

/** What Redis would keep of a job. A job may be undefined. */
export function jsonOf(job: unknown): string {
  let json: string | undefined;
  let cause: unknown;
  try {
    json = job === undefined ? "" : JSON.stringify(job);
  } catch (error) {
    cause = error;
  }
  if (json !== undefined) return json;
  throw new MillraceError("PAYLOAD_INVALID", "The job cannot be stored as JSON.", { cause });
}

export function checkText(name: string, value: string): string {
  const isText = typeof value === "string" && value.length > 0 && value.length <= longestText;
  if (isText && value.isWellFormed()) return value;
  throw invalid(`${name} must be a text of 1 to ${longestText} whole characters.`);
}

export function checkOptions(options: object): void {
  if (!isObject(options)) throw invalid("Options must be an object.");
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const isSignal = (value: AbortSignal): boolean =>
  isObject(value) &&
  typeof value.aborted === "boolean" &&
  typeof value.addEventListener === "function";

const invalid = (message: string): MillraceError => new MillraceError("OPTION_INVALID", message);
