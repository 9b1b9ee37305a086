// A job that was there when a process died may be what kills the next one. So it starts before all that came with it
// and nothing begins beside it for a while: who dies of it then is known. Its lease says whether it runs, and whether
// others do: before that it is not to blame. Whoever was there twice is charged for the last time, and waits longer for
// the runs that were there before it. The workers of one process die together, so they share this: the leases of the
// others say that what they hold is not to blame while it is alone.

import type { Clock } from "../runtime/clock.ts";
import type { LeaseMark } from "../store/store.ts";
import type { HeldJob } from "./held-jobs.ts";

/** A worker of this process. */
export interface Member {
  readonly running: () => number;
  /** How long the oldest of them has run. */
  readonly runsForMs: () => number;
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
  /** It waits for others, or for its lease to say how it runs; then it may begin. */
  state: "waiting" | "telling" | "ready";
  /** A death would be its doing: nothing else runs, or at least nothing else begins. */
  isToBlame: boolean;
  /** Their leases say that they are not to blame. */
  spared: readonly Member[];
}

const aloneMs = 1_000;
/** Longer than most runs, and short enough for everybody who waits. */
const aloneAgainMs = 30_000;

export const isSuspect = ({ job }: HeldJob): boolean => job.crashCount > 0;
const wasThereAgain = ({ job }: HeldJob): boolean => job.crashCount > 1;

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
    if (turn.suspect !== suspect) return false;
    if (turn.state === "waiting") this.#decide(turn);
    if (turn.state !== "ready") return false;
    const ms = wasThereAgain(suspect) ? aloneAgainMs : aloneMs;
    if (turn.isToBlame) this.#after(turn, ms, () => void this.#share(turn));
    else this.#over(turn);
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
    const waitMs = this.#mostWaitMs(suspect);
    const startBy = this.#clock.monotonic() + waitMs;
    const turn: Turn = {
      ...{ suspect, member, startBy, timers: [] },
      ...{ state: "waiting", isToBlame: false, spared: [] },
    };
    this.#turn = turn;
    if (waitMs > 0) {
      void member.mark({ untimed: suspect.job.token.claimId });
      this.#after(turn, waitMs + 1, () => this.#changed());
    }
    return turn;
  }

  /** Runs that have taken long already will hardly end in a moment. */
  #mostWaitMs(suspect: HeldJob): number {
    if (this.#running === 0) return 0;
    if (wasThereAgain(suspect)) return aloneAgainMs;
    const oldestMs = Math.max(...[...this.#members].map(({ runsForMs }) => runsForMs()));
    return Math.max(0, aloneMs - oldestMs);
  }

  #decide(turn: Turn): void {
    const isAlone = this.#running === 0;
    if (!isAlone && this.#clock.monotonic() < turn.startBy) return;
    turn.isToBlame = isAlone || !wasThereAgain(turn.suspect);
    void this.#tell(turn);
  }

  async #tell(turn: Turn): Promise<void> {
    const { suspect, member, isToBlame } = turn;
    const { claimId } = suspect.job.token;
    turn.state = "telling";
    turn.spared = isToBlame ? this.#besides(member) : [];
    await Promise.all([
      member.mark(isToBlame ? { alone: claimId } : { shared: claimId }),
      ...turn.spared.map((other) => other.mark({ spared: true })),
    ]);
    turn.state = "ready";
    if (this.#turn === turn) this.#changed();
  }

  async #share(turn: Turn): Promise<void> {
    const { suspect, member } = turn;
    const shared = suspect.job.token.claimId;
    await Promise.all([member.mark({ shared }), this.#spareNobody(turn)]);
    if (this.#turn === turn) this.#over(turn);
  }

  #end(turn: Turn): void {
    if (turn.spared.length === 0) this.#over(turn);
    else void this.#spareNobody(turn).then(() => this.#turn === turn && this.#over(turn));
  }

  async #spareNobody({ spared }: Turn): Promise<void> {
    await Promise.all(spared.map((other) => other.mark({ spared: false })));
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
