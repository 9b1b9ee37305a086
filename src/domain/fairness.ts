// Tenants take turns by slot, each visit worth the tenant's weight. A claim with room for many gives
// everybody several visits at once; where the room ends, the next claim goes on. claim_lanes in SQL does
// the same, and a test compares the two.

export interface Waiting {
  readonly slot: number;
  /** The tenant's weight: how many jobs a visit is worth. */
  readonly share: number;
  readonly jobs: number;
}

/** The slot visited last, and how much of that visit is left. */
export interface TurnCursor {
  readonly slot: number;
  readonly credit: number;
}

export interface Shares {
  /** Jobs taken, by slot. */
  readonly taken: ReadonlyMap<number, number>;
  readonly cursor: TurnCursor | null;
}

/** So many tenants more than there is room for are visited: some turn out to have nothing that may start. */
const mostInVain = 32;

export function shareOut(
  waiting: readonly Waiting[],
  cursor: TurnCursor | null,
  most: number,
): Shares {
  const left = new Map(waiting.map(({ slot, jobs }) => [slot, jobs]));
  const taken = new Map<number, number>();
  let now = cursor;
  let room = most;
  let open = inTurn(waiting, cursor).slice(0, room + mostInVain);
  let credit = open[0]?.slot === cursor?.slot ? (cursor?.credit ?? 0) : 0;
  while (room > 0 && open.length > 0) {
    const rounds = Math.max(1, Math.floor(room / open.reduce((sum, { share }) => sum + share, 0)));
    const next: Waiting[] = [];
    for (const one of open) {
      const { slot, share } = one;
      const quota = rounds * share - (credit > 0 ? Math.max(0, share - credit) : 0);
      const asked = Math.min(room, quota);
      const got = Math.min(asked, left.get(slot) ?? 0);
      if (got > 0) taken.set(slot, (taken.get(slot) ?? 0) + got);
      left.set(slot, (left.get(slot) ?? 0) - got);
      if (got === asked) next.push(one);
      room -= got;
      now = { slot, credit: room > 0 || got < asked ? 0 : Math.min(share, quota - got) };
      credit = 0;
      if (room === 0) break;
    }
    open = next;
  }
  return { taken, cursor: now };
}

/** From the cursor on and round; its own slot first while its visit is not over. */
function inTurn(waiting: readonly Waiting[], cursor: TurnCursor | null): Waiting[] {
  const sorted = [...waiting].sort((a, b) => a.slot - b.slot);
  if (cursor === null) return sorted;
  const first = cursor.credit > 0 ? cursor.slot : cursor.slot + 1;
  return [
    ...sorted.filter(({ slot }) => slot >= first),
    ...sorted.filter(({ slot }) => slot < first),
  ];
}
