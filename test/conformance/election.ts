// Every promise of src/manager/leader-election.ts, for each way to elect. Time is simulated.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LeaderElection } from "../../src/manager/leader-election.ts";
import { ElectionSoak } from "../support/election-soak.ts";
import { randomOf } from "../support/random.ts";
import type { TestStore } from "../support/store.ts";

export const ttlMs = 10_000;

/** A way to elect, on servers of its own. */
export interface ElectionStage {
  readonly opened: TestStore;
  /** Of another process each time. `cutOff` takes it away from what only chooses the candidate. */
  candidate(): Promise<Candidacy>;
  /** Lets so much time pass for what the servers keep. */
  age(ms: number): Promise<void>;
  /** Loses what may be lost: all that is not in PostgreSQL. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

export interface Candidacy {
  readonly election: LeaderElection;
  cutOff(isCutOff: boolean): void;
}

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
}

export function electionConformance(
  name: string,
  open: () => Promise<ElectionStage>,
  soak: SoakOptions,
): void {
  describe(name, () => {
    let stage: ElectionStage;
    beforeAll(async () => {
      stage = await open();
    });
    afterAll(() => stage?.close());

    const three = async () => {
      await stage.age(10 * ttlMs);
      const [a, b, c] = [await stage.candidate(), await stage.candidate(), await stage.candidate()];
      const close = () => Promise.all([a, b, c].map(({ election }) => election.close()));
      return { a: a.election, b: b.election, c: c.election, first: a, close };
    };
    const mustElect = async (election: LeaderElection): Promise<number> => {
      const term = await election.campaign();
      if (term === null) throw new Error("the office is taken");
      return term;
    };

    it("elects one of several, and nobody else while it renews", async () => {
      const { a, b, c, close } = await three();
      const terms = await Promise.all([a, b, c].map((one) => one.campaign()));
      const elected = terms.findIndex((term) => term !== null);
      expect(terms.filter((term) => term !== null)).toHaveLength(1);
      const leader = [a, b, c][elected] ?? a;
      for (let i = 0; i < 5; i++) {
        await stage.age(0.7 * ttlMs);
        expect(await leader.renew(terms[elected] ?? 0)).toBe(true);
        const others = [a, b, c].filter((one) => one !== leader);
        expect(await Promise.all(others.map((one) => one.campaign()))).toEqual([null, null]);
      }
      await close();
    });

    it("elects another one under a larger term when a leader does not renew", async () => {
      const { a, b, close } = await three();
      const first = await mustElect(a);
      await stage.age(ttlMs + 1);
      const second = await mustElect(b);
      expect(second).toBeGreaterThan(first);
      expect(await a.renew(first)).toBe(false);
      expect(await a.campaign()).toBeNull();
      expect(await b.renew(second)).toBe(true);
      await close();
    });

    it("does not revive a term that has run out, though nobody else was elected", async () => {
      const { a, close } = await three();
      const first = await mustElect(a);
      await stage.age(ttlMs + 1);
      expect(await a.renew(first)).toBe(false);
      expect(await mustElect(a)).toBeGreaterThan(first);
      await close();
    });

    it("gives the office to another one at once after a resignation", async () => {
      const { a, b, close } = await three();
      const first = await mustElect(a);
      await a.resign(first);
      const second = await mustElect(b);
      expect(second).toBeGreaterThan(first);
      // A late resignation takes the office from nobody.
      await a.resign(first);
      expect(await b.renew(second)).toBe(true);
      await close();
    });

    it("keeps terms increasing and one leader when everything outside PostgreSQL is lost", async () => {
      const { a, b, c, close } = await three();
      const seen = [await mustElect(a)];
      for (let i = 0; i < 4; i++) {
        await stage.forget();
        const before = seen.at(-1) ?? 0;
        const elected = (await Promise.all([b, c].map((one) => one.campaign()))).flatMap((term) =>
          term === null ? [] : [term],
        );
        expect(elected.length).toBeLessThanOrEqual(1);
        if (elected.length > 0) expect(await a.renew(before)).toBe(false);
        await stage.age(ttlMs + 1);
        seen.push(await mustElect(a));
        expect(seen.at(-1)).toBeGreaterThan(Math.max(before, ...elected));
      }
      await close();
    });

    it("has a leader although nothing but PostgreSQL can be reached", async () => {
      const { a, b, first, close } = await three();
      first.cutOff(true);
      const term = await mustElect(a);
      expect(await a.renew(term)).toBe(true);
      expect(await b.campaign()).toBeNull();
      first.cutOff(false);
      expect(await a.renew(term)).toBe(true);
      await close();
    });

    it(`stands ${soak.minutes} minutes of kills, stops, partitions and losses (seed ${soak.seed})`, async () => {
      await stage.age(10 * ttlMs);
      const run = new ElectionSoak(stage, { ttlMs, random: randomOf(soak.seed, name) });
      const seen = await run.run(soak.minutes * 60_000);
      console.log(JSON.stringify({ election: name, minutes: soak.minutes, ...seen.told }));
      expect(seen.violations).toEqual([]);
      // A run in which nothing of this happened has tested nothing.
      expect(Object.entries(seen.told).filter(([, times]) => times === 0)).toEqual([]);
    }, 600_000);
  });
}
