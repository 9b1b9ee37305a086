// Plays each command twice, on the pure core and on the store, and compares.

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { isTerminal } from "../../src/domain/job-state.ts";
import { apply, type Command, newJob } from "../../src/domain/lifecycle.ts";
import { outcomeOfLapse } from "../../src/domain/outcome.ts";
import type { Token } from "../../src/domain/token.ts";
import { type Actor, commandOf, future, now, type Step, tokenOf } from "./rehearsal-step.ts";
import { cancelled, dead, type Ending, released, retried, type Stage, snoozed } from "./stage.ts";

const hourMs = 3_600_000;
const hotTables = ["job", "scheduled_job", "dead_job"];
const repair = { actor: "rehearsal", reason: "test" };

export class Rehearsal {
  readonly #stage: Stage;
  readonly #actors: Actor[] = [];
  readonly #ended: Actor[] = [];
  /** Claims and the lease each was made under; a lease that has run out stays so unless renewed. */
  readonly #leases = new Map<string, { id: string; over: boolean }>();

  private constructor(stage: Stage) {
    this.#stage = stage;
  }

  static async begin(stage: Stage, slots: number): Promise<Rehearsal> {
    await stage.sql(
      "truncate millrace.job, millrace.scheduled_job, millrace.claim, millrace.lease, millrace.dead_job",
    );
    const rehearsal = new Rehearsal(stage);
    const names = Array.from({ length: slots }, (_, i) => `slot-${i}`);
    const queues = await stage.store.ensureQueues("", names);
    for (const [i, { id }] of queues.entries()) await rehearsal.#enter(i, id, false);
    return rehearsal;
  }

  async perform(step: Step): Promise<void> {
    const before = this.#actors.map(({ core }) => core);
    switch (step.do) {
      case "promote":
        await this.#stage.upkeep.promote(100);
        this.#all({ do: "promote", now });
        break;
      case "expire":
        await this.#stage.upkeep.expire(100, this.#stage.process);
        this.#all({ do: "expire", now });
        break;
      case "claimAll":
        await this.#claim(this.#actors);
        break;
      case "claim":
        await this.#claim([this.#actor(step)]);
        break;
      case "lose":
        await this.#lose(this.#actor(step));
        break;
      case "enqueue":
        if (isTerminal(this.#actor(step).core.state))
          await this.#enter(step.slot, this.#actor(step).queueId, step.later);
        break;
      case "makeDue":
      case "makeExpired":
        await this.#passTime(this.#actor(step), step.do);
        break;
      default:
        await this.#act(step);
    }
    await this.#compare(this.#actors, JSON.stringify({ step, before }), hotTables);
  }

  async checkEnded(): Promise<void> {
    const everybody = [...this.#ended, ...this.#actors];
    await this.#compare(everybody, "in the end", [...hotTables, "history"]);
  }

  #actor({ slot }: Step): Actor {
    const actor = this.#actors[slot];
    if (actor === undefined) throw new Error(`no slot ${slot}`);
    return actor;
  }

  #all(command: Command): void {
    for (const actor of this.#actors) this.#applied(actor, command);
  }

  #applied(actor: Actor, command: Command): boolean {
    const result = apply(actor.core, command);
    if (result.ok) actor.core = result.job;
    return result.ok;
  }

  async #enter(slot: number, queueId: number, later: boolean): Promise<void> {
    const old = this.#actors[slot];
    if (old !== undefined) this.#ended.push(old);
    const job = this.#stage.job(queueId, {
      expiresInMs: hourMs,
      ...(later ? { delayMs: hourMs } : {}),
    });
    await this.#stage.put(job);
    const core = newJob({ expiresAt: future, ...(later ? { dueAt: future } : {}) });
    this.#actors[slot] = { id: job.id, queueId, core, tokens: [] };
  }

  async #passTime(actor: Actor, what: "makeDue" | "makeExpired"): Promise<void> {
    const column = what === "makeDue" ? "due_at" : "expires_at";
    const tables = what === "makeDue" ? ["scheduled_job"] : ["scheduled_job", "job"];
    for (const table of tables)
      await this.#stage.sql(
        `update millrace.${table} set ${column} = now() - interval '1 s' where id = $1`,
        [actor.id],
      );
    if (what === "makeExpired") actor.core = { ...actor.core, expiresAt: now };
    else if (actor.core.dueAt !== null) actor.core = { ...actor.core, dueAt: now };
  }

  /** One suspect at most is taken by a claim, so two are never asked for at once. */
  async #claim(actors: readonly Actor[]): Promise<void> {
    const suspects = actors.filter(({ core }) => core.crashCount > 0).slice(1);
    const asked = actors.filter((actor) => !suspects.includes(actor));
    const [claimId, leaseId] = [randomUUID(), await this.#stage.openLease()];
    const queueIds = asked.map(({ queueId }) => queueId);
    const jobs = await this.#stage.claim(queueIds, { claimId, leaseId });
    this.#leases.set(claimId, { id: leaseId, over: false });
    const expected = asked.filter((actor) => this.#applied(actor, { do: "claim", now, claimId }));
    const granted = (list: readonly { id: string; claimNo: number }[]) =>
      list.map(({ id, claimNo }) => `${id}/${claimNo}`).sort();
    expect(granted(jobs.map(({ id, token }) => ({ id, claimNo: token.claimNo })))).toEqual(
      granted(expected.map(({ id, core }) => ({ id, claimNo: core.claimNo }))),
    );
    for (const actor of expected) actor.tokens.push({ claimId, claimNo: actor.core.claimNo });
  }

  /** The holder renews twice without listing the claim: whoever is still held by it goes back. */
  async #lose(actor: Actor): Promise<void> {
    const token = actor.tokens.at(-1);
    const lease = token === undefined ? undefined : this.#leases.get(token.claimId);
    if (token === undefined || lease === undefined) return;
    const first = await this.#stage.lease.renew(lease.id, hourMs, [token.claimId]);
    await this.#stage.lease.renew(lease.id, hourMs, []);
    if (!first.renewed) return;
    lease.over = false;
    for (const one of this.#actors) {
      const held = { claimId: token.claimId, claimNo: one.core.claimNo };
      this.#applied(one, { do: "release", token: held });
    }
  }

  async #act(step: Step): Promise<void> {
    const actor = this.#actor(step);
    const accepted = await this.#onStore(step, actor);
    const command = commandOf(step, this.#token(step, actor));
    // A lease that is alive is not lapsed, whatever the token.
    const lease = this.#leases.get(this.#token(step, actor).claimId);
    const possible = step.do !== "lapse" || lease?.over === true;
    const expected = possible && this.#applied(actor, command);
    expect({ step, accepted }).toEqual({ step, accepted: expected });
  }

  #token(step: Step, actor: Actor): Token {
    const other = this.#actors.find((one) => one !== actor);
    return tokenOf(step, actor, other);
  }

  /** True when the store accepted. */
  async #onStore(step: Step, actor: Actor): Promise<boolean> {
    const { store } = this.#stage;
    const refused = (error: { code?: string }) => {
      if (error.code !== "ILLEGAL_TRANSITION") throw error;
      return false;
    };
    switch (step.do) {
      case "cancel":
        return ["cancelled", "requested"].includes(await store.cancel(actor.id, null));
      case "delete":
        return store.delete(actor.id, repair);
      case "discard":
        return store.discard(actor.id, repair).then(() => true, refused);
      case "reprocess": {
        const made = store.reprocess(actor.id, randomUUID(), repair);
        // The new job is somebody else's story.
        return made.then(({ id }) => store.delete(id, repair), refused);
      }
      default:
        return this.#settle(step, actor);
    }
  }

  async #settle(step: Step, actor: Actor): Promise<boolean> {
    const token = this.#token(step, actor);
    const { id, queueId, core } = actor;
    const job = { id, queueId, token, attempt: core.attempt, timeline: [] };
    const delayMs = step.later ? hourMs : 0;
    switch (step.do) {
      case "complete":
        return (await this.#stage.complete([job])) === 1;
      case "renew":
        return this.#renew(job.id, token);
      case "lapse":
        return this.#lapse(step, actor, token);
      default: {
        const endings: Record<string, Ending> = {
          retry: retried(delayMs),
          snooze: snoozed(delayMs),
          fail: dead,
          cancelAck: cancelled,
          release: released,
        };
        return (await this.#stage.settle(job, endings[step.do] ?? dead)) !== undefined;
      }
    }
  }

  /** A renewal holds on to what it lists, and a replay shows what that is. */
  async #renew(id: string, token: Token): Promise<boolean> {
    const lease = this.#leases.get(token.claimId);
    if (lease !== undefined) {
      const { renewed } = await this.#stage.lease.renew(lease.id, hourMs, [token.claimId]);
      if (renewed) lease.over = false;
    }
    const { jobs } = await this.#stage.worker.replay(token.claimId);
    return jobs.some((job) => job.id === id && job.token.claimNo === token.claimNo);
  }

  async #lapse(step: Step, actor: Actor, token: Token): Promise<boolean> {
    const lease = this.#leases.get(token.claimId);
    if (lease !== undefined && !step.alive) {
      await this.#stage.endLease(lease.id);
      lease.over = true;
    }
    const { attempt, crashCount } = actor.core;
    const run = { type: "work", attempt, maxAttempts: 5, crashCount };
    const outcome = outcomeOfLapse(run, step.charge) as Ending;
    const job = { id: actor.id, queueId: actor.queueId, token, attempt, timeline: [] };
    const charged = step.charge === "charged";
    const settled = await this.#stage.settleLapsed(job, lease?.id ?? null, outcome, charged);
    return settled !== undefined;
  }

  async #compare(actors: readonly Actor[], story: string, tables: string[]): Promise<void> {
    const ids = actors.map(({ id }) => id);
    const jobs = new Map((await this.#stage.store.find(ids)).map((job) => [job.id, job]));
    const rows = await this.#stage.sql<{ id: string; claim_no: number }>(
      tables
        .map((table) => `select id, claim_no from millrace.${table} where id = any($1)`)
        .join(" union all "),
      [ids],
    );
    const seen = actors.map(({ id, core }) => {
      const job = jobs.get(id);
      const live = core.state === "ready" || core.state === "running";
      return {
        state: job?.state,
        attempt: job?.attempt,
        crashCount: job?.crashCount,
        claimNo: rows.find((row) => row.id === id)?.claim_no ?? core.claimNo,
        cancelRequested: live ? job?.cancelRequested : core.cancelRequested,
        reprocessed: job?.reprocessedAs !== null,
      };
    });
    const expected = actors.map(({ core }) => ({
      state: core.state,
      attempt: core.attempt,
      crashCount: core.crashCount,
      claimNo: core.claimNo,
      cancelRequested: core.cancelRequested,
      reprocessed: core.reprocessed,
    }));
    expect(seen, story).toEqual(expected);
  }
}
