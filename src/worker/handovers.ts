// Jobs that come claimed already: by a flush of this process, which asks first, or by one elsewhere, which has
// gone by our standing offer. See docs/design/handover.md.

import type { ClaimedJob } from "../domain/job.ts";
import type { Events } from "../runtime/events.ts";
import type { HandedClaim, ImmediateClaim, LeaseSession, Listener, Offer } from "../store/store.ts";
import { Doubts, type DoubtsOptions } from "./doubts.ts";
import type { Fetcher } from "./fetcher.ts";
import { parseFresh } from "./fresh-job.ts";
import type { HeldJob, HeldJobs } from "./held-jobs.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Registry } from "./registry.ts";
import { type Described, StandingOffer } from "./standing-offer.ts";

export interface HandoversOptions extends DoubtsOptions {
  readonly worker: string;
  readonly session: Pick<LeaseSession, "offer">;
  /** null: nobody elsewhere is offered anything. */
  readonly listener: Listener | null;
  readonly registry: Registry;
  readonly fetcher: Fetcher;
  readonly held: HeldJobs;
  readonly lease: Pick<LeaseKeeper, "leaseId" | "renewing" | "releasedBefore">;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly room: () => number;
  readonly isFull: () => boolean;
  /** How many jobs there is room for that nobody here has asked for. */
  readonly unasked: () => number;
  /** How many it would take in one go, and how many it may have then. */
  readonly handed: () => Pick<Offer, "atOnce" | "most">;
  /** How long runs take. */
  readonly runMs: () => number;
  /** Nothing was left when this worker looked last, and it is not looking now. */
  readonly isIdle: () => boolean;
  readonly deliver: (jobs: readonly HeldJob[]) => void;
  readonly release: (jobs: readonly HeldJob[]) => void;
  /** Something was delivered outside a turn. */
  readonly delivered: () => void;
  /** Of what was delivered, starts what there is a slot for. */
  readonly start: () => void;
  /** There is a claim to read. */
  readonly hand: (claim: HandedClaim) => void;
  readonly events: Events;
}

/** A run that began while its job was being stored. One of these is called, once. */
export interface BegunRun {
  stored(lastSeq: number | null): void;
  /** It was not. */
  lost(): void;
  /** Nobody knows, and it may be yet. */
  doubted(): void;
}

/** Whoever's runs take longer may be busy for so long without saying so, and gains nothing by a handover. */
const quickRunMs = 100;

export class Handovers {
  readonly #options: HandoversOptions;
  readonly #standing: StandingOffer;
  readonly #doubts: Doubts;
  #reserved = 0;

  constructor(options: HandoversOptions) {
    this.#options = options;
    this.#doubts = new Doubts(options);
    this.#standing = new StandingOffer({
      ...options,
      leaseId: () => options.lease.leaseId,
      describe: () => this.#describe(),
    });
  }

  /** Places that are kept for jobs of flushes under way. */
  get reserved(): number {
    return this.#reserved;
  }

  /** May somebody have claimed something under this lease of which nothing was heard? */
  get mayBeUnheard(): boolean {
    return this.#standing.wasMade;
  }

  consider(): void {
    this.#standing.consider();
  }

  note(): void {
    this.#standing.note();
  }

  /** Its queues are others now. */
  withdraw(): void {
    this.#standing.withdraw();
  }

  close(): Promise<void> {
    this.#doubts.close();
    return this.#standing.close();
  }

  /** Takes fresh jobs of these queues straight from the flush that inserts them. */
  offer(jobs: readonly { id: string; queueId: number; type: string }[]): ImmediateClaim | null {
    const { room, isIdle, fetcher, registry, held, lease } = this.#options;
    const free = room();
    if (free === 0 || !isIdle()) return null;
    const { queueIds } = fetcher;
    const count = registry.leading(jobs, queueIds, free);
    const claimId = jobs[0]?.id;
    if (count === 0 || claimId === undefined) return null;
    held.expect(claimId);
    this.#reserved += count;
    const { leaseId } = lease;
    return { claimId, leaseId, count, hints: fetcher.hints(), queueIds };
  }

  /** The flush is through: these jobs are ours, or (an empty list) the offer was not taken. */
  take(
    claim: ImmediateClaim,
    jobs: readonly (ClaimedJob & { weight: number })[],
    lastSeq: number | null,
  ): void {
    const { held, deliver, delivered } = this.#options;
    this.#reserved -= claim.count;
    deliver(held.add(claim.claimId, claim.leaseId, jobs));
    delivered();
    // Somebody waits for the runs, nobody for this.
    this.#took(jobs.at(-1), lastSeq);
  }

  mayBegin(type: string): boolean {
    return this.#options.registry.definition(type)?.waitForCommit !== true;
  }

  /** Instead of `take`: the flush is being committed, the run does not wait for that. Its end will. */
  begin(claim: ImmediateClaim, job: ClaimedJob & { weight: number }): BegunRun {
    const { held, deliver, start, stored, lost } = this.#options;
    this.#reserved -= claim.count;
    const begun = held.add(claim.claimId, claim.leaseId, [job]);
    for (const one of begun) one.isStored = false;
    deliver(begun);
    start();
    return {
      stored: (lastSeq) => {
        begun.forEach(stored);
        this.#took(job, lastSeq);
      },
      lost: () => begun.forEach(lost),
      doubted: () => {
        for (const one of begun) this.#doubts.add(one);
      },
    };
  }

  #took(last: { queueId: number; weight: number } | undefined, lastSeq: number | null): void {
    const { fetcher } = this.#options;
    if (last !== undefined && lastSeq !== null) fetcher.note(last.queueId, last.weight, lastSeq);
    this.note();
  }

  /** Somebody says that this claim was made for a worker. */
  heard(claim: HandedClaim): void {
    const { held, lease, hand } = this.#options;
    const { claimId, leaseId, jobId } = claim;
    if (leaseId !== lease.leaseId || held.holds(claimId)) return;
    held.expect(claimId);
    const open = () => {
      // One from before the last renewal but one may have been given back: nothing that is told of it counts.
      if (!this.#isNew(claim)) hand({ claimId, leaseId, jobId });
      else if (!this.#openNow(claim)) hand(claim);
    };
    // A renewal under way does not list it, and may give it back; none that begins later does.
    if (lease.renewing === null) open();
    else lease.renewing.then(open, open);
  }

  #isNew({ leaseId, fresh }: HandedClaim): boolean {
    const { lease } = this.#options;
    return fresh !== undefined && leaseId === lease.leaseId && fresh.at >= lease.releasedBefore;
  }

  /** Takes the jobs out of their notice; false: they have to be read. */
  #openNow(claim: HandedClaim): boolean {
    const { held, fetcher, events, worker, delivered } = this.#options;
    const { claimId, leaseId, fresh } = claim;
    const jobs = parseFresh(claim);
    const last = jobs?.at(-1);
    if (fresh === undefined || jobs === null || last === undefined) return false;
    fetcher.note(last.queueId, last.weight, fresh.seq + jobs.length - 1);
    const kept = this.deliver(held.add(claimId, leaseId, jobs));
    events.emit("handover.received", { worker, claim: claimId, jobs: jobs.length, kept });
    delivered();
    return true;
  }

  /** False: there was no room, and they go back unspent. */
  deliver(jobs: readonly HeldJob[]): boolean {
    const { unasked, deliver, release } = this.#options;
    const kept = unasked() >= jobs.length;
    if (kept) {
      deliver(jobs);
      this.note();
    } else {
      this.#standing.withdraw();
      release(jobs);
    }
    return kept;
  }

  #describe(): Described | null {
    const { leaseMs, renewMs, registry, fetcher, room, runMs, handed } = this.#options;
    const { queueIds } = fetcher;
    if (queueIds.length === 0 || runMs() >= quickRunMs || room() === 0) return null;
    const leaseLeftMs = Math.max(0, Math.floor(leaseMs - 1.5 * renewMs));
    return { queueIds, types: registry.types, hints: fetcher.hints(), leaseLeftMs, ...handed() };
  }
}
