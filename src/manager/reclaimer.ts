// Takes jobs back from leases that are over, by the same outcome rule as failures.
//
// A mass lapse is not a mass crash: after a server restart or a change of leader, and when more than
// half of the leases (at least three) lapse at once, everybody gets one more lease to renew.

import { MillraceError } from "../domain/errors.ts";
import { lapseCharges, type Outcome, outcomeOfFailure, outcomeOfLapse } from "../domain/outcome.ts";
import { defaultRetryPolicy } from "../domain/retry-policy.ts";
import { appendEntry, errorFields } from "../domain/timeline.ts";
import { tokenText } from "../domain/token.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type {
  LapsedJob,
  LapsedLease,
  LeaseCensus,
  Settlement,
  UpkeepSession,
} from "../store/store.ts";

export interface ReclaimerOptions {
  readonly session: UpkeepSession;
  readonly process: string;
  readonly intervalMs: number;
  readonly leaseMs: number;
  /** False while this is somebody else's to do. */
  readonly isWanted: () => Promise<boolean>;
  readonly onReclaimed: () => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

export function createReclaimer(options: ReclaimerOptions): Loop {
  const reclaimer = new Reclaimer(options);
  return new Loop({ ...options, name: "reclaimer", run: () => reclaimer.round() });
}

/** Each may have waited for a lock. */
const mostFailures = 5;

/** A robot's claim is a lease of its own. */
const keyOf = ({ leaseId, jobs }: LapsedLease): string => leaseId ?? jobs[0]?.token.claimId ?? "";

class Reclaimer {
  readonly #options: ReclaimerOptions;
  #holdUntil = 0;
  #massSeen = false;
  #told: string | null = null;
  #busy: ReadonlySet<string> = new Set();

  constructor(options: ReclaimerOptions) {
    this.#options = options;
  }

  async round(): Promise<{ processed: number; nextMs?: number }> {
    const { session, isWanted, onReclaimed } = this.#options;
    if (!(await isWanted())) return { processed: 0 };
    if (this.#mustWait(await session.census())) return { processed: 0 };
    const { processed, failure } = await this.#reclaimAll(await session.findLapsed());
    if (processed > 0) onReclaimed();
    await session.forgetEnded();
    if (failure !== null) throw failure;
    // One look finds so many only: there may be more.
    return processed > 0 ? { processed, nextMs: 0 } : { processed };
  }

  /** Somebody may hold a lock on what one of them held: the others need not wait for that, and go first next time. */
  async #reclaimAll(leases: readonly LapsedLease[]) {
    const failed = new Set<string>();
    const wasBusy = (lease: LapsedLease) => Number(this.#busy.has(keyOf(lease)));
    let processed = 0;
    let failure: unknown = null;
    for (const lease of leases.toSorted((a, b) => wasBusy(a) - wasBusy(b))) {
      try {
        processed += await this.#reclaim(lease);
      } catch (error) {
        failure ??= error;
        failed.add(keyOf(lease));
        if (error instanceof MillraceError || failed.size >= mostFailures) break;
      }
    }
    this.#busy = failed;
    return { processed, failure };
  }

  #mustWait(census: LeaseCensus): boolean {
    const { clock, leaseMs, events } = this.#options;
    const reason = changeWithin(leaseMs, census);
    if (reason !== null) {
      // Told once, and only when there is something to wait for.
      if (census.lapsed > 0 && reason !== this.#told)
        events.emit("reclaim.waited", { reason, leases: census.lapsed });
      if (census.lapsed > 0) this.#told = reason;
      return true;
    }
    this.#told = null;
    const mass = census.lapsed >= 3 && census.lapsed > census.live;
    if (mass && !this.#massSeen) {
      this.#holdUntil = clock.monotonic() + leaseMs;
      events.emit("reclaim.waited", { reason: "mass_lapse", leases: census.lapsed });
    }
    this.#massSeen = mass;
    return mass && clock.monotonic() < this.#holdUntil;
  }

  async #reclaim(lease: LapsedLease): Promise<number> {
    const { session, process, clock, events, random } = this.#options;
    const charges = lapseCharges(lease.jobs);
    const now = clock.now().toISOString();
    const settlements = lease.jobs.map((job, i) => {
      const charge = charges[i] ?? "charged";
      const outcome = job.overtime ? overtime(job, random()) : outcomeOfLapse(job, charge);
      return settlement(job, outcome, now, !job.overtime && charge === "charged");
    });
    const settled = await session.settleLapsed(lease.leaseId, settlements, process);
    for (const job of lease.jobs) {
      const kind = settled.get(job.id) as Outcome["kind"] | undefined;
      if (kind === undefined) continue;
      const crashCount = job.crashCount + (kind === "released" || job.overtime ? 0 : 1);
      const { id, type, correlationId } = job;
      events.emit("job.lapsed", { id, type, correlationId, outcome: kind, crashCount });
    }
    return settled.size;
  }
}

function changeWithin(leaseMs: number, census: LeaseCensus) {
  if (census.serverUpMs < leaseMs) return "server_restarted";
  const { leaderChangedMs } = census;
  return leaderChangedMs !== null && leaderChangedMs < leaseMs ? "leader_changed" : null;
}

function overtime(job: LapsedJob, random: number): Outcome {
  const error = new MillraceError("MAX_RUNTIME_EXCEEDED");
  return outcomeOfFailure(job, error, { policy: defaultRetryPolicy, random });
}

function settlement(job: LapsedJob, outcome: Outcome, now: string, charged: boolean): Settlement {
  if (outcome.kind === "completed") throw new TypeError("a lapse cannot complete a job");
  const entry = {
    token: tokenText(job.token),
    attempt: job.attempt,
    worker: job.worker,
    startedAt: job.startedAt.toISOString(),
    endedAt: now,
    outcome: "lapsed" as const,
    ...errorFields("error" in outcome ? outcome.error : undefined),
  };
  return {
    id: job.id,
    token: job.token,
    outcome,
    timeline: appendEntry(job.timeline, entry),
    charged,
  };
}
