// The worker's loop: settle what has ended and claim what there is room for, in one round trip, again
// and again while there is anything to do; otherwise sleep until woken or until the poll floor.
//
// An error leaves the outcome of a turn unknown: its completions are sent again (a token knows a repeat), its
// claim is asked for again under its own id.

import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { WakeUp } from "../runtime/wake-up.ts";
import type { ClaimRequest, HandedClaim, Store, WorkerSession } from "../store/store.ts";
import { ClaimReader, type LostClaim } from "./claim-reader.ts";
import { Confirmer } from "./confirmer.ts";
import type { Fetcher } from "./fetcher.ts";
import type { HeldJob, HeldJobs } from "./held-jobs.ts";
import type { HintBuffer } from "./hint-buffer.ts";
import type { LaneFetcher } from "./lane-fetcher.ts";
import { LaneTurns } from "./lane-turns.ts";
import { SettleLane } from "./settle-lane.ts";
import { type Ended, type Settler, toCompletion, toSettlement } from "./settler.ts";
import type { Suspicion } from "./suspicion.ts";

export interface TurnsOptions {
  readonly session: WorkerSession;
  readonly store: Store;
  readonly worker: string;
  readonly process: string;
  readonly fetcher: Fetcher;
  readonly lanes: LaneFetcher;
  readonly hints: HintBuffer | null;
  readonly settler: Settler;
  readonly held: HeldJobs;
  readonly suspicion: Pick<Suspicion, "isHeld">;
  readonly leaseId: () => string;
  readonly room: () => number;
  readonly laneRoom: () => number;
  /** Hands jobs over; `start` starts those for which there is a slot. */
  readonly deliver: (jobs: readonly HeldJob[]) => void;
  readonly deliverHanded: (jobs: readonly HeldJob[]) => boolean;
  readonly start: () => void;
  readonly settled: () => void;
  /** Before each turn. */
  readonly refresh: () => void;
  readonly idle: () => void; // Before it sleeps.
  readonly delayed: (delayMs: number) => void; // Whoever promotes may have to wake earlier.
  readonly pollMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const mostPerTurn = 1_000;

export class Turns {
  readonly #options: TurnsOptions;
  readonly #wakeUp = new WakeUp();
  readonly #laneTurns: LaneTurns;
  readonly #confirmer: Confirmer;
  readonly #settles: SettleLane;
  readonly #reader: ClaimReader;
  #stopped = false;
  #claiming = true;
  #claimUnderWay = false;
  /** The last claim left something behind. */
  #backlog = false;
  readonly #mayClaim = () => this.#claiming && !this.#settles.isBehind;
  readonly #laneDue = () => this.#mayClaim() && this.#laneTurns.waitMs() === 0;
  #loop: Promise<void> = Promise.resolve();
  #batch = mostPerTurn;
  #errors = 0;
  #turnEnded: (() => void)[] = [];

  constructor(options: TurnsOptions) {
    this.#options = options;
    this.#laneTurns = new LaneTurns(options);
    this.#reader = new ClaimReader(options);
    this.#confirmer = new Confirmer({ ...options, letGo: (held) => this.#letGo(held) });
    this.#settles = new SettleLane({
      ...options,
      session: options.store.worker(`settler ${options.worker}`),
      confirm: (ended, done) => this.#confirmer.confirm(ended, done),
      onSettled: () => this.wake(),
    });
  }

  get settledCount(): number {
    return this.#confirmer.settledCount;
  }

  get claimUnderWay(): boolean {
    return this.#claimUnderWay;
  }

  async start(): Promise<void> {
    this.#loop = this.#run();
  }

  wake(): void {
    this.#wakeUp.wake();
  }

  hand(claim: HandedClaim): void {
    this.#reader.hand(claim);
    this.wake();
  }

  async stopClaiming(): Promise<void> {
    this.#claiming = false;
    await this.claimed();
  }

  /** Resolves when the claim that is under way, if there is one, is answered. */
  async claimed(): Promise<void> {
    if (this.#claimUnderWay) await new Promise<void>((resolve) => this.#turnEnded.push(resolve));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.wake();
    await this.#loop;
    await this.#settles.working;
  }

  async close(): Promise<void> {
    await Promise.all([this.#options.session.close(), this.#settles.close()]);
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

  async #turn(): Promise<boolean> {
    const { settler, hints } = this.#options;
    this.#options.refresh();
    if (this.#reader.pending) await this.#reader.read();
    const others = settler.takeOthers(this.#batch);
    if (others.length > 0) await this.#settleOthers(others);
    const claiming = this.#mayClaim() ? this.#nextClaim() : null;
    const claim = claiming instanceof Promise ? await claiming : claiming;
    if (this.#backlog && (claim !== null || this.#laneDue())) this.#settles.startIfWorthwhile();
    const ended = this.#settles.working === null ? settler.takeCompletions(this.#batch) : [];
    if (claim === null && ended.length === 0)
      return (await this.#claimLanes()) || others.length > 0;
    const jobs = await this.#exchange(ended, claim);
    if (claim?.places !== undefined && jobs.length < claim.places.length) {
      const claimed = new Set(jobs.map(({ job }) => job.place?.seq));
      hints?.missed(claim.places.filter(({ seq }) => !claimed.has(seq)));
    }
    await this.#start(jobs, claim);
    await this.#claimLanes();
    return true;
  }

  async #claimLanes(): Promise<boolean> {
    const request = this.#laneDue() ? this.#laneTurns.next() : null;
    if (request === null) return false;
    const jobs = await this.#underWayWith(request, () => this.#laneTurns.claim(request));
    await this.#start(jobs, request);
    return jobs.length > 0;
  }

  /** What a broker names comes first; what it does not name is looked for now and then. */
  #nextClaim(): ClaimRequest | null | Promise<ClaimRequest | null> {
    const { fetcher, hints } = this.#options;
    const most = this.#laneTurns.plainRoom();
    hints?.wakeIfDue();
    const direct = fetcher.directInMs === 0 ? this.#directClaim(most) : null;
    if (direct !== null) return direct;
    if (hints !== null && !hints.idle && most > 0) return this.#claimOfHints(hints, most);
    return this.#directClaim(most);
  }

  #directClaim(most: number): ClaimRequest | null {
    const { fetcher, leaseId, suspicion } = this.#options;
    return fetcher.request(leaseId(), most, !suspicion.isHeld);
  }

  async #claimOfHints(hints: HintBuffer, most: number): Promise<ClaimRequest | null> {
    const { fetcher, leaseId, room } = this.#options;
    const places = await hints.take(most);
    if (!this.#claiming || places.length > room()) hints.putBack(places);
    else if (places.length > 0) return fetcher.requestAt(leaseId(), places.length, places);
    return this.#claiming ? this.#directClaim(Math.min(most, room())) : null;
  }

  /**
   * With more to fetch the next turn goes out first, and these jobs run while the server works on it.
   * Otherwise they start at once, and those that end at once join the next turn.
   */
  async #start(
    jobs: readonly HeldJob[],
    claim: Pick<ClaimRequest, "limit" | "places"> | null,
  ): Promise<void> {
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
    return this.#underWayWith(claim, async () => {
      try {
        const completions = ended.map(toCompletion);
        const turned = await session.turn({ worker, process, completions, finishedClaims, claim });
        await this.#confirmer.confirm(ended, turned.completed);
        if (claim === null) return [];
        fetcher.answered(claim, turned.jobs, clock.monotonic() - started);
        return held.add(claim.claimId, claim.leaseId, turned.jobs);
      } catch (error) {
        settler.putBack(ended);
        if (claim !== null) fetcher.failed();
        throw error;
      }
    });
  }

  async #underWayWith<T>(claim: LostClaim | null, act: () => Promise<T>): Promise<T> {
    this.#claimUnderWay = claim !== null;
    try {
      return await act();
    } catch (error) {
      if (claim !== null) this.#reader.lose(claim);
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
      await this.#confirmer.confirm(ended, done.size === ended.length ? null : done);
      const delays = ended.flatMap(({ outcome }) => ("delayMs" in outcome ? outcome.delayMs : []));
      if (delays.length > 0) this.#options.delayed(Math.min(...delays));
    } catch (error) {
      settler.putBack(ended);
      throw error;
    }
  }

  #letGo(ended: HeldJob): void {
    const { held, fetcher, lanes, start } = this.#options;
    const { job } = ended;
    held.settled(ended);
    lanes.ended(job.queueId);
    // Others have waited for its end. Suspects come one at a time: there may be another.
    if (job.crashCount > 0) {
      setImmediate(start);
      fetcher.wake(true);
      lanes.wake([job.queueId]);
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
    const mine = this.#settles.working === null ? settler.pending : settler.pendingOthers;
    const claims = this.#mayClaim() && room() > 0;
    if (mine > 0 || (claims && hints?.idle === false)) return;
    const poll = pollMs * (0.8 + 0.4 * random());
    const waits = claims ? [fetcher.waitMs() ?? poll, this.#laneTurns.waitMs() ?? poll] : [];
    const sleepMs = Math.min(poll, ...waits);
    this.#options.idle();
    const woken = await this.#wakeUp.sleep(sleepMs);
    if (!woken && sleepMs === poll) fetcher.wake(true);
  }
}
