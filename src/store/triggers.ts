// What the rest of Millrace may ask of its store about triggers.

import type { Token } from "../domain/token.ts";
import type { Trigger, TriggerError, TriggerSettings, TriggerType } from "../domain/trigger.ts";

export interface TriggerFilter {
  readonly tenant?: string;
  readonly type?: TriggerType;
  readonly name?: string;
}

/** How a handler ends one item of the job it runs. */
export type ItemOutcome =
  | { readonly kind: "completed"; readonly result?: unknown }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "released" };

export interface ItemSettlement {
  readonly itemId: string;
  /** The job that holds the item, and the token under which the handler holds the job. */
  readonly jobId: string;
  readonly token: Token;
  readonly outcome: ItemOutcome;
  readonly random: number;
}

export interface TriggerStore {
  create(id: string, settings: TriggerSettings): Promise<Trigger>;
  /** The change sees the trigger as it is, and nobody else's change comes in between. */
  update(id: string, change: (trigger: Trigger) => TriggerSettings): Promise<Trigger>;
  delete(id: string): Promise<boolean>;
  find(id: string): Promise<Trigger | null>;
  list(filter: TriggerFilter, limit: number): Promise<Trigger[]>;
  /** What became of the item: completed, retried, dead, released or cancelled. */
  settleItem(settlement: ItemSettlement): Promise<string>;
}

export interface DueTrigger {
  readonly id: string;
  readonly name: string;
  readonly tenant: string;
  readonly type: TriggerType;
  readonly failures: number;
  /** When it was found due, by the database's clock. */
  readonly seenAt: Date;
}

export interface Fired {
  readonly jobIds: readonly string[];
  /** How many items the job holds; 0 for a time trigger. */
  readonly items: number;
  /** The first slot that was passed over, if any. */
  readonly missedFrom: Date | null;
  /** More items may be waiting, and the trigger wants them at once. */
  readonly again: boolean;
}

export interface EndedBatch {
  readonly jobId: string;
  readonly items: number;
}

export interface TriggerOutlook {
  /** Milliseconds until the next trigger is due; null: none will be. */
  readonly waitMs: number | null;
  /** Queues whose items some trigger wants as they arrive. */
  readonly arrivals: readonly number[];
  /** Some job holds items. */
  readonly open: boolean;
}

/** The trigger runner's own connection. */
export interface TriggerSession {
  /** Those that have waited longest, and a few of those that fire most often: these are held up least. */
  due(limit: number): Promise<DueTrigger[]>;
  /** One transaction; null: nothing happened, since somebody else has it or it is not due any more. */
  fire(id: string, seenAt?: Date): Promise<Fired | null>;
  /** Several in one transaction: all of them, or none when one cannot. */
  fireTogether(ids: readonly string[], seenAt: Date): Promise<(Fired | null)[]>;
  noteFailure(id: string, error: TriggerError, delayMs: number): Promise<Date | null>;
  /** Settles what ended jobs still hold, a transaction per job. */
  endBatches(limit: number): Promise<EndedBatch[]>;
  waitForNext(): Promise<TriggerOutlook>;
  close(): Promise<void>;
}
