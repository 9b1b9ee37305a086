// What operators do to single jobs, each with a reason that is kept.

import { checkText } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Job } from "../domain/job.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type { CancelResult, Reprocessed, Store } from "../store/store.ts";
import type { Calls } from "./calls.ts";
import { checkId } from "./check-id.ts";
import { needReason } from "./need-reason.ts";

export interface RepairsOptions {
  readonly store: Store;
  readonly calls: Calls;
  readonly get: (id: string) => Promise<Job | null>;
}

export class Repairs {
  readonly #options: RepairsOptions;

  constructor(options: RepairsOptions) {
    this.#options = options;
  }

  async cancel(id: string, reason?: string): Promise<CancelResult> {
    const { store, calls } = this.#options;
    checkId("job", id);
    if ((reason ?? "") !== "") checkText("A reason", reason, 2_000);
    const result = await calls.track(() => store.cancel(id, reason ?? null));
    if (result === "unknown") throw unknownJob(id);
    return result;
  }

  async delete(id: string, reason: string, actor: string): Promise<void> {
    const { store, calls, get } = this.#options;
    checkId("job", id);
    const repair = repairOf(reason, actor);
    if (await calls.track(() => store.delete(id, repair))) return;
    const job = await get(id);
    if (job === null) throw unknownJob(id);
    if (job.state !== "deleted")
      throw new MillraceError("ILLEGAL_TRANSITION", `Job ${id} is ${job.state}.`);
  }

  async reprocess(id: string, reason: string, actor: string): Promise<Reprocessed> {
    const { store, calls } = this.#options;
    checkId("job", id);
    const repair = repairOf(reason, actor);
    return calls.track(() => store.reprocess(id, uuidv7(), repair));
  }

  async discard(id: string, reason: string, actor: string): Promise<void> {
    const { store, calls } = this.#options;
    checkId("job", id);
    const repair = repairOf(reason, actor);
    await calls.track(() => store.discard(id, repair));
  }
}

export const unknownJob = (id: string): MillraceError =>
  new MillraceError("JOB_NOT_FOUND", `There is no job ${id}.`);

const repairOf = (reason: string, actor: string) => ({
  reason: needReason(reason),
  actor: checkText("An actor", actor, 200),
});
