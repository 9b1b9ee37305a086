// A lane is the part of a queue whose jobs share an ordering or limit key. Its number says which kind it
// is: 0 without a key, −1 for suspects without one, odd for an ordering key, even for a limit key.

export type LaneKind = "none" | "ordered" | "limited";

const most = 1_073_741_823;

/** `digest` is the SHA-256 of tenant, line break and key, in hex. The same as lane_of in SQL. */
export function laneOf(digest: string, kind: "ordered" | "limited"): number {
  const hash = Number.parseInt(digest.slice(0, 8), 16);
  return ((hash % most) + 1) * 2 + (kind === "ordered" ? 1 : 0);
}

export function laneKind(lane: number): LaneKind {
  if (lane <= 0) return "none";
  return lane % 2 === 1 ? "ordered" : "limited";
}

/** What is known of a lane when somebody wants to start something in it. */
export interface LaneState {
  readonly kind: LaneKind;
  /** How many of its jobs run. */
  readonly running: number;
  /** Has one of them run before, and waits for its next attempt? */
  readonly retrying: boolean;
  readonly dead: boolean;
}

export interface LaneLimits {
  readonly keyConcurrency: number | null;
  readonly deadBlocksKey: boolean;
}

/** How many jobs of a lane may start now. */
export function laneRoom(lane: LaneState, limits: LaneLimits): number {
  switch (lane.kind) {
    case "none":
      return Number.POSITIVE_INFINITY;
    case "limited":
      return Math.max(0, (limits.keyConcurrency ?? Number.POSITIVE_INFINITY) - lane.running);
    case "ordered":
      return lane.running > 0 || lane.retrying || (limits.deadBlocksKey && lane.dead) ? 0 : 1;
  }
}
