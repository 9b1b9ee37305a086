// Claims in controlled queues: a round trip of their own, never together with a settle.

import type { LaneClaimRequest } from "../store/flow.ts";
import type { WorkerSession } from "../store/store.ts";
import type { HeldJob, HeldJobs } from "./held-jobs.ts";
import type { LaneFetcher } from "./lane-fetcher.ts";
import type { Suspicion } from "./suspicion.ts";

export interface LaneTurnsOptions {
  readonly session: WorkerSession;
  readonly lanes: LaneFetcher;
  readonly held: HeldJobs;
  readonly suspicion: Pick<Suspicion, "isHeld">;
  readonly leaseId: () => string;
  readonly room: () => number;
  /** The same for controlled queues. */
  readonly laneRoom: () => number;
}

export class LaneTurns {
  readonly #options: LaneTurnsOptions;
  #plainFirst = false;

  constructor(options: LaneTurnsOptions) {
    this.#options = options;
  }

  /** What plain queues may fill: where both have something to do, each gets half. */
  plainRoom(): number {
    const { room } = this.#options;
    const free = room();
    if (this.waitMs() !== 0) return free;
    if (free > 1) return free >> 1;
    this.#plainFirst = !this.#plainFirst;
    return this.#plainFirst ? free : 0;
  }

  /** Until the next claim makes sense; null: not before something ends here, or somebody wakes us. */
  waitMs(): number | null {
    const { lanes, laneRoom } = this.#options;
    return laneRoom() > 0 ? lanes.waitMs() : null;
  }

  next(): LaneClaimRequest | null {
    const { lanes, suspicion, leaseId, laneRoom } = this.#options;
    return lanes.isDue ? lanes.next(leaseId(), laneRoom(), !suspicion.isHeld) : null;
  }

  async claim(request: LaneClaimRequest): Promise<HeldJob[]> {
    const { session, lanes, held } = this.#options;
    held.expect(request.claimId);
    try {
      const claimed = await session.claimLanes(request);
      lanes.answered(request, claimed);
      return held.add(request.claimId, request.leaseId, claimed.jobs);
    } catch (error) {
      lanes.failed(request);
      throw error;
    }
  }
}
