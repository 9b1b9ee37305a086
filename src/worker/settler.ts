// Collects how runs ended until the next turn takes them.

import type { Outcome } from "../domain/outcome.ts";
import { appendEntry, errorFields, type RunOutcome } from "../domain/timeline.ts";
import { tokenText } from "../domain/token.ts";
import type { Completion, Settlement } from "../store/store.ts";
import type { HeldJob } from "./held-jobs.ts";

export interface Ended {
  readonly held: HeldJob;
  readonly outcome: Outcome;
  readonly durationMs: number;
}

export class Settler {
  #completed: Ended[] = [];
  #others: Ended[] = [];
  /** What ended before its job was stored: nobody could find it yet. */
  #early: Ended[] = [];

  get pending(): number {
    return this.#completed.length + this.#others.length;
  }

  get pendingCompletions(): number {
    return this.#completed.length;
  }

  get pendingOthers(): number {
    return this.#others.length;
  }

  /** False: it has to wait until its job is stored. */
  add(ended: Ended): boolean {
    const { held, outcome } = ended;
    const ends = outcome.kind === "completed" ? this.#completed : this.#others;
    (held.isStored ? ends : this.#early).push(ended);
    return held.isStored;
  }

  /** Its job can be found now. */
  stored(held: HeldJob): void {
    held.isStored = true;
    const early = this.#early;
    this.#early = early.filter((ended) => ended.held !== held);
    for (const ended of early) if (ended.held === held) this.add(ended);
  }

  /** What a failed turn had taken: it goes first next time. */
  putBack(ended: readonly Ended[]): void {
    for (const one of ended) this.add(one);
  }

  takeCompletions(most: number): Ended[] {
    return this.#completed.splice(0, most);
  }

  takeOthers(most: number): Ended[] {
    return this.#others.splice(0, most);
  }
}

export function toCompletion({ held: { job }, outcome }: Ended): Completion {
  const result = outcome.kind === "completed" ? outcome.json : undefined;
  const { counted } = job.meta;
  return { id: job.id, token: job.token, queueId: job.queueId, place: job.place, result, counted };
}

export function toSettlement(
  { held: { job }, outcome }: Ended,
  worker: string,
  now: Date,
): Settlement {
  if (outcome.kind === "completed") throw new TypeError("a completion is not a settlement");
  const entry = {
    token: tokenText(job.token),
    attempt: job.attempt,
    worker,
    startedAt: job.startedAt.toISOString(),
    endedAt: now.toISOString(),
    outcome: outcome.kind satisfies RunOutcome,
    ...errorFields("error" in outcome ? outcome.error : undefined),
    ...(outcome.kind === "snoozed" ? snoozeFields(outcome) : {}),
  };
  const counted = job.meta.counted === true;
  const timeline = appendEntry(job.timeline, entry);
  return { id: job.id, token: job.token, outcome, timeline, counted };
}

const snoozeFields = ({ reason, probed }: Extract<Outcome, { kind: "snoozed" }>) => ({
  message: reason.slice(0, 200),
  ...(probed === true ? { probes: 1 } : {}),
});
