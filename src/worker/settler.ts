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
    return takeFrom(this.#completed, most);
  }

  takeOthers(most: number): Ended[] {
    return takeFrom(this.#others, most);
  }
}

/** Each job once: of two runs that end together one is superseded, and must not pass for the other. */
function takeFrom(all: Ended[], most: number): Ended[] {
  const taken = all.splice(0, most);
  // Who is held twice was claimed twice.
  if (!taken.some(({ held }) => held.job.token.claimNo > 1)) return taken;
  const ids = new Set<string>();
  const isFirst = ({ held }: Ended) => ids.size < ids.add(held.job.id).size;
  const once = taken.filter(isFirst);
  if (once.length < taken.length) all.unshift(...taken.filter((one) => !once.includes(one)));
  return once;
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
