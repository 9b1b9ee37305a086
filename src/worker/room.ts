// How many jobs a worker asks for.

const aheadMs = 10;
const mostAhead = 1_000;
const mostPerClaim = 1_000;
/** In controlled queues what is fetched ahead holds slots and keys. */
export const mostAheadInLanes = 400;

const mostTypes = 1_000;

/**
 * How long runs take, by type. The slowest counts: what is fetched ahead may be of any type, and what
 * waits behind a thousand slow jobs waits long, however quick the others were.
 */
export class RunTimes {
  readonly #byType = new Map<string, number>();
  #slowestMs = Number.POSITIVE_INFINITY;

  /** Infinity until the first run has ended. */
  get slowestMs(): number {
    return this.#slowestMs;
  }

  note(type: string, runMs: number): void {
    const before = this.#byType.get(type);
    const average = before === undefined ? runMs : before + (runMs - before) * 0.1;
    if (before === undefined && this.#byType.size >= mostTypes) this.#byType.clear();
    this.#byType.set(type, average);
    if (this.#byType.size === 1 || average >= this.#slowestMs) this.#slowestMs = average;
    else if (before === this.#slowestMs) this.#slowestMs = Math.max(...this.#byType.values());
  }
}

/** What quick handlers finish in a moment is fetched before it is needed; slow ones hoard nothing. */
export function aheadOf(concurrency: number, runMs: number, most = mostAhead): number {
  if (runMs >= aheadMs) return 0;
  const inAMoment = (concurrency * aheadMs) / Math.max(runMs, 0.1);
  return Math.floor(Math.min(most, inAMoment));
}

/** `taken`: what it holds or expects. */
export function roomFor(
  concurrency: number,
  runMs: number,
  taken: number,
  mostAheadOfNeed = mostAhead,
): number {
  const ahead = aheadOf(concurrency, runMs, mostAheadOfNeed);
  const free = concurrency + ahead - taken;
  // Half of it, where there is a choice: while these run, the others are fetched.
  const most = ahead === 0 ? mostPerClaim : Math.min(mostPerClaim, (concurrency + ahead) >> 1);
  return Math.max(0, Math.min(most, free));
}

const mostHandedAhead = 4_000;

/** How many jobs others may give it in one go, and how many it may have then that are not settled. */
export const handedTo = (concurrency: number, runMs: number) => ({
  atOnce: Math.min(mostPerClaim, concurrency + aheadOf(concurrency, runMs)),
  most: concurrency + aheadOf(concurrency, runMs, mostHandedAhead),
});

/** For what it was given: whoever gives cannot know what others give in the same moment. */
export function roomUnasked(concurrency: number, runMs: number, taken: number): number {
  const isQuick = aheadOf(concurrency, runMs) > 0;
  return Math.max(0, (isQuick ? 2 : 1) * handedTo(concurrency, runMs).most - taken);
}
