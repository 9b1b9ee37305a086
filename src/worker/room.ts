// How many jobs a worker asks for.

const aheadMs = 10;
const mostAhead = 1_000;
const mostPerClaim = 1_000;
/** In controlled queues what is fetched ahead holds slots and keys, and is counted with every claim. */
export const mostAheadInLanes = 400;

/** What quick handlers finish in a moment is fetched before it is needed; slow ones hoard nothing. */
export function aheadOf(concurrency: number, averageRunMs: number, most = mostAhead): number {
  if (averageRunMs >= aheadMs) return 0;
  const inAMoment = (concurrency * aheadMs) / Math.max(averageRunMs, 0.1);
  return Math.floor(Math.min(most, inAMoment));
}

/** `taken`: what it holds or expects. */
export function roomFor(
  concurrency: number,
  averageRunMs: number,
  taken: number,
  mostAheadOfNeed = mostAhead,
): number {
  const ahead = aheadOf(concurrency, averageRunMs, mostAheadOfNeed);
  const free = concurrency + ahead - taken;
  // Half of it, where there is a choice: while these run, the others are fetched.
  const most = ahead === 0 ? mostPerClaim : Math.min(mostPerClaim, (concurrency + ahead) >> 1);
  return Math.max(0, Math.min(most, free));
}
