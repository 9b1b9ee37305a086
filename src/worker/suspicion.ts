// A job that was there when a process died may be what kills the next one. So it starts before all that came with it
// and has its time alone: who dies of it then is known. Whoever was there twice is charged for the last time, and so
// waits for the runs that were there before it, too. Before it has company its lease says so.

import type { Clock } from "../runtime/clock.ts";
import type { HeldJob } from "./held-jobs.ts";

export interface SuspicionOptions {
  /** From now on others run beside this claim; resolves when a death would be known for that. */
  readonly share: (claimId: string) => Promise<void>;
  /** Whoever waits may be asked for again. */
  readonly onChanged: () => void;
  readonly clock: Clock;
}

const aloneMs = 1_000;
/** Longer than most runs, and short enough for everybody who waits. */
const aloneAgainMs = 30_000;

export const isSuspect = ({ job }: HeldJob): boolean => job.crashCount > 0;
const wasThereAgain = ({ job }: HeldJob): boolean => job.crashCount > 1;

export class Suspicion {
  readonly #options: SuspicionOptions;
  #suspect: HeldJob | null = null;
  #startBy = 0;

  constructor(options: SuspicionOptions) {
    this.#options = options;
  }

  /** Does a suspect run, or wait for others to end, for which everybody waits? */
  get isReserved(): boolean {
    if (this.#suspect?.place === null) this.#suspect = null; // it is settled
    return this.#suspect !== null;
  }

  /** It takes so long that others are better off elsewhere. */
  get isLong(): boolean {
    return this.#suspect !== null && this.isReserved && wasThereAgain(this.#suspect);
  }

  /** Whether it starts now, beside so many runs; asked again when one of them has ended, or took too long. */
  begins(suspect: HeldJob, running: number): boolean {
    if (this.isReserved && this.#suspect !== suspect) return false;
    const { clock, onChanged } = this.#options;
    if (this.#suspect === null) {
      this.#suspect = suspect;
      const waitMs = running > 0 && wasThereAgain(suspect) ? aloneAgainMs : 0;
      this.#startBy = clock.monotonic() + waitMs;
      if (waitMs > 0) setTimeout(onChanged, waitMs + 1).unref();
    }
    if (running > 0 && clock.monotonic() < this.#startBy) return false;
    const over = () => void this.#share(suspect);
    setTimeout(over, wasThereAgain(suspect) ? aloneAgainMs : aloneMs).unref();
    return true;
  }

  async #share(suspect: HeldJob): Promise<void> {
    const { share, onChanged } = this.#options;
    if (suspect.place !== null) await share(suspect.job.token.claimId);
    if (this.#suspect === suspect) this.#suspect = null;
    onChanged();
  }
}
