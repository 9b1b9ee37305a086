// Candidates in simulated time, with one fault after another; and who wrote under which term.

import { Candidate, type LeaderElection } from "../../src/manager/leader-election.ts";
import { Events } from "../../src/runtime/events.ts";
import type { Candidacy, ElectionStage } from "../conformance/election.ts";
import { type SimulatedClock, SimulatedTime } from "./simulated-time.ts";

interface Options {
  readonly ttlMs: number;
  readonly random: () => number;
}

interface Member {
  readonly candidate: Candidate;
  readonly clock: SimulatedClock;
  readonly candidacy: Candidacy;
  /** What becomes of its calls. */
  link: "fine" | "cut" | "answers lost";
  killed: boolean;
  /** The last term it was elected for. */
  lastTerm: number;
}

const faults = ["kill", "stop", "cut", "lose_answers", "cut_off", "forget", "resign"] as const;
type Fault = (typeof faults)[number];
const size = 3;

export class ElectionSoak {
  readonly #stage: ElectionStage;
  readonly #options: Options;
  readonly #time: SimulatedTime;
  readonly #members: Member[] = [];
  readonly #retired: Member[] = [];
  readonly violations: string[] = [];
  readonly told: Record<string, number> = { terms: 0, accepted: 0, refused: 0 };
  readonly #deck: Fault[] = [];
  #newest = 0;
  #written = 0;
  /** Since when nobody has been in office. */
  #vacantSince: number | null = 0;

  constructor(stage: ElectionStage, options: Options) {
    this.#stage = stage;
    this.#options = options;
    this.#time = new SimulatedTime((ms) => stage.age(ms));
    for (const fault of faults) this.told[fault] = 0;
  }

  async run(durationMs: number): Promise<{ violations: string[]; told: Record<string, number> }> {
    const { ttlMs, random } = this.#options;
    for (let i = 0; i < size; i++) await this.#join();
    while (this.#time.now < durationMs) {
      await this.#pass(ttlMs * (2 + 2 * random()));
      const heal = await this.#break();
      this.#checkOffice();
      await this.#pass(ttlMs * (0.5 + 4 * random()));
      await heal();
    }
    await this.#leave();
    return { violations: this.violations, told: this.told };
  }

  async #pass(ms: number): Promise<void> {
    const until = this.#time.now + ms;
    while (this.#time.now < until) {
      await this.#time.step(until);
      await this.#write();
      this.#checkOffice();
    }
  }

  /** Whoever has ever been elected writes on, whatever it should know: the fence must see to it. */
  async #write(): Promise<void> {
    for (const { lastTerm } of [...this.#members, ...this.#retired.slice(-size)]) {
      if (lastTerm === 0) continue;
      const accepted = await this.#stage.opened.store
        .asLeader(lastTerm, async () => true)
        .catch((error: { code?: string }) => {
          if (error.code !== "NOT_LEADER") throw error;
          return false;
        });
      this.#note(accepted ? "accepted" : "refused");
      if (accepted && lastTerm < this.#written)
        this.violations.push(`term ${lastTerm} wrote after term ${this.#written}`);
      if (accepted) this.#written = lastTerm;
    }
    const believers = this.#members.filter(({ candidate, killed }) => !killed && candidate.term);
    if (believers.length > 1)
      this.violations.push(`two leaders by their own clocks at ${this.#time.now}`);
  }

  #checkOffice(): void {
    const { ttlMs } = this.#options;
    const inOffice = this.#members.some(
      ({ candidate, clock, link }) => !clock.stopped && link === "fine" && candidate.term !== null,
    );
    const { now } = this.#time;
    const since = this.#vacantSince;
    if (since !== null && now - since > 2 * ttlMs)
      this.violations.push(`no leader from ${since} to ${now}`);
    this.#vacantSince = inOffice ? null : (since ?? now);
  }

  /** Does one of the faults, mostly to the leader; answers how to heal it. */
  async #break(): Promise<() => Promise<void>> {
    const { random } = this.#options;
    const leader = this.#members.find(({ candidate }) => candidate.term !== null);
    const anyone = this.#members[Math.floor(random() * size)];
    const victim = (random() < 0.8 ? leader : anyone) ?? anyone;
    // Each fault once before any comes again.
    if (this.#deck.length === 0) this.#deck.push(...faults);
    const [fault = "kill"] = this.#deck.splice(Math.floor(random() * this.#deck.length), 1);
    if (victim === undefined) throw new Error("nobody is there");
    this.#note(fault);
    const relink = (link: Member["link"]) => {
      victim.link = link;
    };
    switch (fault) {
      case "kill":
        victim.killed = true;
        victim.clock.stopped = true;
        return () => this.#replace(victim);
      case "stop":
        victim.clock.stopped = true;
        return async () => {
          victim.clock.stopped = false;
        };
      case "cut":
      case "lose_answers":
        relink(fault === "cut" ? "cut" : "answers lost");
        return async () => relink("fine");
      case "cut_off":
        victim.candidacy.cutOff(true);
        return async () => victim.candidacy.cutOff(false);
      case "forget":
        await this.#stage.forget();
        return async () => {};
      case "resign":
        await this.#end(victim);
        return () => this.#replace(victim);
    }
  }

  async #join(): Promise<void> {
    const { ttlMs, random } = this.#options;
    const events = new Events();
    const clock = this.#time.clock();
    const candidacy = await this.#stage.candidate();
    const linkOf = () => member.link;
    const member: Member = {
      candidate: new Candidate({
        election: overLink(candidacy.election, linkOf, this.#time),
        serve: (_, over) =>
          new Promise((resolve) => over.addEventListener("abort", () => resolve())),
        ...{ ttlMs, clock, random, events },
      }),
      ...{ clock, candidacy, link: "fine", killed: false, lastTerm: 0 },
    };
    events.on("leader.elected", ({ term }) => {
      this.#note("terms");
      if (term <= this.#newest) this.violations.push(`term ${term} after term ${this.#newest}`);
      this.#newest = term;
      member.lastTerm = term;
    });
    this.#members.push(member);
    await member.candidate.start();
  }

  async #replace(member: Member): Promise<void> {
    this.#members.splice(this.#members.indexOf(member), 1);
    this.#retired.push(member);
    await this.#join();
  }

  /** Stopping takes time only as far as servers do. */
  async #end(member: Member): Promise<void> {
    member.clock.stopped = false;
    await member.candidate.stop();
  }

  async #leave(): Promise<void> {
    for (const member of [...this.#members, ...this.#retired]) {
      member.link = "fine";
      await this.#end(member);
      await member.candidacy.election.close();
    }
  }

  #note(what: string): void {
    this.told[what] = (this.told[what] ?? 0) + 1;
  }
}

function overLink(
  election: LeaderElection,
  link: () => Member["link"],
  time: SimulatedTime,
): LeaderElection {
  const pass = <T>(call: () => Promise<T>): Promise<T> =>
    time.hold(
      (async () => {
        if (link() === "cut") throw new Error("cut off");
        const answer = await call();
        if (link() === "answers lost") throw new Error("the answer was lost");
        return answer;
      })(),
    );
  return {
    campaign: () => pass(() => election.campaign()),
    renew: (term) => pass(() => election.renew(term)),
    resign: (term) => pass(() => election.resign(term)),
    close: () => election.close(),
  };
}
