// Who fits, where several capacities bound what may be there. A call fits as a whole or not at all, in all
// of its bounds; calls are judged in order, and what fits counts for those that come after it.

/** By the name of a bound, how many jobs of one call fall under it. */
export type Wanted = ReadonlyMap<string, number>;

export interface Full {
  readonly bound: string;
  readonly depth: number;
  readonly capacity: number;
  readonly wanted: number;
}

export interface Judged {
  /** By call: what it does not fit into; null: it fits. */
  readonly full: readonly (Full | null)[];
  /** With those that fit. */
  readonly depths: ReadonlyMap<string, number>;
}

export function judgeCalls(
  calls: readonly Wanted[],
  capacities: ReadonlyMap<string, number>,
  depths: ReadonlyMap<string, number>,
): Judged {
  const after = new Map(depths);
  const full = calls.map((wanted) => {
    const refusal = fullBound(wanted, capacities, after);
    if (refusal !== null) return refusal;
    for (const [bound, count] of wanted) after.set(bound, (after.get(bound) ?? 0) + count);
    return null;
  });
  return { full, depths: after };
}

function fullBound(
  wanted: Wanted,
  capacities: ReadonlyMap<string, number>,
  depths: ReadonlyMap<string, number>,
): Full | null {
  for (const [bound, count] of wanted) {
    const capacity = capacities.get(bound) ?? Number.POSITIVE_INFINITY;
    const depth = depths.get(bound) ?? 0;
    if (depth + count > capacity) return { bound, depth, capacity, wanted: count };
  }
  return null;
}
