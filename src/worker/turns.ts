// The worker's loop: settle what has ended and claim what there is room for, in one round trip, again
// and again while there is anything to do; otherwise sleep until woken or until the poll floor.
//
// An error leaves the outcome of a turn unknown. So the same completions are sent again (a repeat is
// recognised by its token) and the claim is asked for again under its own id.

import type { ClaimedJob } from "../domain/job.ts";
import type { RunOutcome } from "../domain/timeline.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { WakeUp } from "../runtime/wake-up.ts";
import type { ClaimRequest, Store, WorkerSession } from "../store/store.ts";
import type { Fetcher } from "./fetcher.ts";
import { type HeldJob, type HeldJobs, runningJob } from "./held-jobs.ts";
import type { HintBuffer } from "./hint-buffer.ts";
import { SettleLane } from "./settle-lane.ts";
import { type Ended, type Settler, toCompletion, toSettlement } from "./settler.ts";

export interface TurnsOptions {
  readonly session: WorkerSession;
  readonly store: Store;
  readonly worker: string;
  readonly process: string;
  readonly fetcher: Fetcher;
  readonly hints: HintBuffer | null;
  readonly settler: Settler;
  readonly held: HeldJobs;
  readonly leaseId: () => string;
  readonly room: () => number;
  /** Hands jobs over; `start` starts those for which there is a slot. */
  readonly deliver: (jobs: readonly HeldJob[]) => void;
  readonly start: () => void;
  readonly settled: () => void;
  /** A job was put off: whoever promotes may have to wake earlier. */
  readonly delayed: (delayMs: number) => void;
  readonly pollMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const mostPerTurn = 1_000;

export class Turns {
  readonly #options: TurnsOptions;
  readonly #wakeUp = new WakeUp();
  readonly #lane: SettleLane;
  #stopped = false;
  #claiming = true;
  #claimUnderWay = false;
  /** The last claim left something behind. */
  #backlog = false;
  #loop: Promise<void> = Promise.resolve();
  #batch = mostPerTurn;
  #errors = 0;
  #lostClaims: { claimId: string; leaseId: string }[] = [];
  #turnEnded: (() => void)[] = [];
  settledCount = 0;

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#lane = new SettleLane({
      ...options,
      session: options.store.worker(`settler ${options.worker}`),
      confirm: (ended, done) => this.#confirm(ended, done),
      onSettled: () => this.wake(),
    });
  }

  /** A claim is on its way: what it brings is not known yet. */
  get claimUnderWay(): boolean {
    return this.#claimUnderWay;
  }

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  wake(): void {
    this.#wakeUp.wake();
  }

  /** Resolves when no claim is under way any more. */
  async stopClaiming(): Promise<void> {
    this.#claiming = false;
    if (this.#claimUnderWay) await new Promise<void>((resolve) => this.#turnEnded.push(resolve));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.wake();
    await this.#loop;
    await this.#lane.working;
  }

  async close(): Promise<void> {
    await Promise.all([this.#options.session.close(), this.#lane.close()]);
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        const worked = await this.#turn();
        this.#errors = 0;
        if (worked) this.#batch = mostPerTurn;
        else await this.#sleep();
      } catch (error) {
        await this.#recoverFrom(error);
      }
    }
  }

  get #mayClaim(): boolean {
    return this.#claiming && !this.#lane.isBehind;
  }

  /** False when there was nothing to do. */
  async #turn(): Promise<boolean> {
    const { settler, hints } = this.#options;
    if (this.#lostClaims.length > 0) await this.#replayLost();
    const others = settler.takeOthers(this.#batch);
    if (others.length > 0) await this.#settleOthers(others);
    const claiming = this.#mayClaim ? this.#nextClaim() : null;
    const claim = claiming instanceof Promise ? await claiming : claiming;
    if (claim !== null && this.#backlog) this.#lane.startIfWorthwhile();
    const ended = this.#lane.working === null ? settler.takeCompletions(this.#batch) : [];
    if (claim === null && ended.length === 0) return others.length > 0;
    const jobs = await this.#exchange(ended, claim);
    if (claim?.places !== undefined && jobs.length < claim.places.length) {
      const claimed = new Set(jobs.map(({ job }) => job.place?.seq));
      hints?.missed(claim.places.filter(({ seq }) => !claimed.has(seq)));
    }
    await this.#start(jobs, claim);
    return true;
  }

  /** What a broker names comes first; what it does not name is looked for now and then. */
  #nextClaim(): ClaimRequest | null | Promise<ClaimRequest | null> {
    const { fetcher, hints, room } = this.#options;
    hints?.wakeIfDue();
    const direct = fetcher.directInMs === 0 ? this.#directClaim() : null;
    if (direct !== null) return direct;
    if (hints !== null && !hints.idle && room() > 0) return this.#claimOfHints(hints);
    return this.#directClaim();
  }

  #directClaim(): ClaimRequest | null {
    const { fetcher, held, leaseId, room } = this.#options;
    return fetcher.request(leaseId(), room(), !held.holdsSuspect);
  }

  async #claimOfHints(hints: HintBuffer): Promise<ClaimRequest | null> {
    const { fetcher, leaseId, room } = this.#options;
    const places = await hints.take(room());
    if (!this.#claiming || places.length > room()) hints.putBack(places);
    else if (places.length > 0) return fetcher.requestAt(leaseId(), places.length, places);
    return this.#claiming ? this.#directClaim() : null;
  }

  /**
   * With more to fetch the next turn goes out first, and these jobs run while the server works on it.
   * Otherwise they start at once, and those that end at once join the next turn.
   */
  async #start(jobs: readonly HeldJob[], claim: ClaimRequest | null): Promise<void> {
    const { deliver, start, room, hints } = this.#options;
    deliver(jobs);
    const more = claim?.places === undefined ? jobs.length >= (claim?.limit ?? 1) : !hints?.idle;
    this.#backlog = more;
    if (more && room() > 0) setImmediate(start);
    else {
      start();
      await new Promise(setImmediate);
    }
  }

  async #exchange(ended: readonly Ended[], claim: ClaimRequest | null): Promise<HeldJob[]> {
    const { session, fetcher, held, worker, process, clock, settler } = this.#options;
    const started = clock.monotonic();
    if (claim !== null) held.expect(claim.claimId);
    // Without completions the statement is a plain claim; their rows go with the next ones.
    const finishedClaims = ended.length > 0 ? held.takeFinishedClaims() : [];
    this.#claimUnderWay = claim !== null;
    try {
      const completions = ended.map(toCompletion);
      const turned = await session.turn({ worker, process, completions, finishedClaims, claim });
      await this.#confirm(ended, turned.completed);
      if (claim === null) return [];
      fetcher.answered(claim, turned.jobs, clock.monotonic() - started);
      return held.add(claim.claimId, claim.leaseId, turned.jobs);
    } catch (error) {
      settler.putBack(ended);
      if (claim !== null) {
        fetcher.failed();
        this.#lostClaims.push(claim);
      }
      throw error;
    } finally {
      this.#claimUnderWay = false;
      for (const resolve of this.#turnEnded.splice(0)) resolve();
    }
  }

  async #settleOthers(ended: readonly Ended[]): Promise<void> {
    const { session, worker, process, clock, settler } = this.#options;
    try {
      const now = clock.now();
      const settlements = ended.map((one) => toSettlement(one, worker, now));
      const done = await session.settle(settlements, worker, process);
      await this.#confirm(ended, done.size === ended.length ? null : done);
      const delays = ended.flatMap(({ outcome }) => ("delayMs" in outcome ? outcome.delayMs : []));
      if (delays.length > 0) this.#options.delayed(Math.min(...delays));
    } catch (error) {
      settler.putBack(ended);
      throw error;
    }
  }

  /** `done` are those that took effect, null for all. What did not was a repeat, moved, or is superseded. */
  async #confirm(
    ended: readonly Ended[],
    done: { has(id: string): boolean } | null,
  ): Promise<void> {
    const missed = done === null ? [] : ended.filter(({ job }) => !done.has(job.id));
    const stored = missed.length === 0 ? null : await this.#askWhatHappened(missed);
    for (const one of ended) {
      if (stored === null || done?.has(one.job.id)) this.#settled(one);
      else this.#missed(one, stored.get(one.job.id));
    }
    this.#options.settled();
  }

  #askWhatHappened(ended: readonly Ended[]) {
    return this.#options.store.settledOutcomes(
      ended.map(({ job }) => ({ id: job.id, token: job.token })),
    );
  }

  #settled({ job, outcome, durationMs }: Ended): void {
    const { events } = this.#options;
    this.#letGo(job);
    this.settledCount++;
    if (events.wants("job.settled")) {
      events.emit("job.settled", { ...runningJob(job), outcome, durationMs });
    }
  }

  #missed(one: Ended, stored: RunOutcome | undefined): void {
    const { events } = this.#options;
    const { job, outcome } = one;
    const event = { ...runningJob(job), outcome: outcome.kind };
    if (stored === outcome.kind) {
      events.emit("job.settle_repeated", event);
      this.#settled(one);
    } else {
      this.#letGo(job);
      events.emit("job.settle_refused", event);
    }
  }

  #letGo(job: ClaimedJob): void {
    const { held, fetcher } = this.#options;
    held.settled(job);
    // Suspects come one at a time: there may be another.
    if (job.crashCount > 0) fetcher.wake(true);
  }

  async #replayLost(): Promise<void> {
    const { session, held, events, deliver, start, leaseId, settled } = this.#options;
    for (let lost = this.#lostClaims[0]; lost !== undefined; lost = this.#lostClaims[0]) {
      // Under a lease that was lost meanwhile, whatever it brought belongs to others.
      const ours = lost.leaseId === leaseId();
      const { jobs } = ours ? await session.replay(lost.claimId) : { jobs: [] };
      this.#lostClaims.shift();
      if (ours) events.emit("claim.replayed", { claim: lost.claimId, jobs: jobs.length });
      deliver(held.add(lost.claimId, lost.leaseId, jobs));
      start();
      settled();
    }
  }

  async #recoverFrom(error: unknown): Promise<void> {
    const { clock, random, events } = this.#options;
    this.#errors++;
    this.#batch = Math.max(1, this.#batch >> 1);
    events.emit("service.failed", { service: "worker", error });
    await clock.sleep(Math.min(1_000, 20 * 2 ** Math.min(this.#errors, 6)) * (0.5 + random()));
  }

  async #sleep(): Promise<void> {
    const { fetcher, hints, pollMs, random, settler, room } = this.#options;
    const mine = this.#lane.working === null ? settler.pending : settler.pendingOthers;
    const mayClaim = this.#mayClaim && room() > 0;
    if (mine > 0 || (mayClaim && hints?.idle === false)) return;
    const wait = mayClaim ? fetcher.waitMs() : null;
    const poll = pollMs * (0.8 + 0.4 * random());
    const sleepMs = Math.min(wait ?? poll, poll);
    const woken = await this.#wakeUp.sleep(sleepMs);
    if (!woken && sleepMs === poll) fetcher.wake(true);
  }
}
