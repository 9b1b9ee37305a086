// A job that was there when a process died may be what kills the next one. So it starts before all that came with it
// and has its time alone: who dies of it then is known. Whoever was there twice is charged for the last time, and so
// waits for the runs that were there before it, too. Before it has company its lease says so. The workers of one
// process die together, so they share this: the leases of the others say that what they hold is not to blame.

import type { Clock } from "../runtime/clock.ts";
import type { LeaseMark } from "../store/store.ts";
import type { HeldJob } from "./held-jobs.ts";

/** A worker of this process. */
export interface Member {
  readonly running: () => number;
  readonly holdsSuspect: () => boolean;
  /** Resolves when a death would be known for that. */
  readonly mark: (mark: LeaseMark) => Promise<void>;
  /** Whoever waits may be asked for again. */
  readonly changed: () => void;
}

/** The time that a suspect has for itself, with what has to come before it. */
interface Turn {
  readonly suspect: HeldJob;
  readonly member: Member;
  /** It waits for the runs that were there before it, but not for ever. */
  readonly startBy: number;
  readonly timers: NodeJS.Timeout[];
  isReady: boolean;
}

const aloneMs = 1_000;
/** Longer than most runs, and short enough for everybody who waits. */
const aloneAgainMs = 30_000;

export const isSuspect = ({ job }: HeldJob): boolean => job.crashCount > 0;
const wasThereAgain = ({ job }: HeldJob): boolean => job.crashCount > 1;

/** Who waited for others in vain has company already. */
function aloneFor(suspect: HeldJob, isAlone: boolean): number {
  if (!wasThereAgain(suspect)) return aloneMs;
  return isAlone ? aloneAgainMs : 0;
}

export class Suspicion {
  readonly #clock: Clock;
  readonly #members = new Set<Member>();
  #turn: Turn | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  join(member: Member): void {
    this.#members.add(member);
  }

  leave(member: Member): void {
    this.#members.delete(member);
    if (this.#turn?.member === member) this.#end(this.#turn);
  }

  /** Does a suspect run, or wait for others to end, for which everybody waits? */
  get isReserved(): boolean {
    return this.#turn !== null;
  }

  /** It takes so long that others are better off elsewhere. */
  get isLong(): boolean {
    return this.#turn !== null && wasThereAgain(this.#turn.suspect);
  }

  /** A process holds one suspect at a time. */
  get isHeld(): boolean {
    return [...this.#members].some((member) => member.holdsSuspect());
  }

  isHeldBesides(member: Member): boolean {
    return this.#besides(member).some((other) => other.holdsSuspect());
  }

  /** Whether it starts now; asked again when a run has ended, or when something has changed. */
  begins(suspect: HeldJob, member: Member): boolean {
    const turn = this.#turn ?? this.#reserve(suspect, member);
    if (turn.suspect !== suspect || !turn.isReady) return false;
    const isAlone = this.#running === 0;
    if (!isAlone && this.#clock.monotonic() < turn.startBy) return false;
    this.#after(turn, aloneFor(suspect, isAlone), () => void this.#share(turn));
    return true;
  }

  /** Its end is stored, or it is somebody else's. */
  gone(suspect: HeldJob): void {
    if (this.#turn?.suspect === suspect) this.#end(this.#turn);
  }

  /** A run of this worker has ended: a suspect of another one may have waited for it. */
  ended(member: Member): void {
    const turn = this.#turn;
    if (turn !== null && turn.member !== member) turn.member.changed();
  }

  get #running(): number {
    return [...this.#members].reduce((sum, { running }) => sum + running(), 0);
  }

  #besides(member: Member): Member[] {
    return [...this.#members].filter((other) => other !== member);
  }

  #reserve(suspect: HeldJob, member: Member): Turn {
    const waitMs = wasThereAgain(suspect) ? aloneAgainMs : 0;
    const startBy = this.#clock.monotonic() + waitMs;
    const others = this.#besides(member);
    const turn = { suspect, member, startBy, timers: [], isReady: others.length === 0 };
    this.#turn = turn;
    if (waitMs > 0 && this.#running > 0) {
      void member.mark({ untimed: suspect.job.token.claimId });
      this.#after(turn, waitMs + 1, () => this.#changed());
    }
    if (!turn.isReady) void this.#spare(turn, others);
    return turn;
  }

  async #spare(turn: Turn, others: readonly Member[]): Promise<void> {
    await Promise.all(others.map((other) => other.mark({ spared: true })));
    turn.isReady = true;
    if (this.#turn === turn) this.#changed();
  }

  async #share(turn: Turn): Promise<void> {
    const { suspect, member } = turn;
    const shared = suspect.job.token.claimId;
    const others = this.#besides(member).map((other) => other.mark({ spared: false }));
    await Promise.all([member.mark({ shared }), ...others]);
    if (this.#turn === turn) this.#over(turn);
  }

  #end(turn: Turn): void {
    for (const other of this.#besides(turn.member)) void other.mark({ spared: false });
    this.#over(turn);
  }

  #over(turn: Turn): void {
    for (const timer of turn.timers) clearTimeout(timer);
    this.#turn = null;
    // Not from within what has just ended.
    queueMicrotask(() => this.#changed());
  }

  #after(turn: Turn, ms: number, then: () => void): void {
    turn.timers.push(setTimeout(then, ms).unref());
  }

  #changed(): void {
    for (const member of this.#members) member.changed();
  }
}
