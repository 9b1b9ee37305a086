// A limited queue, worker processes that are killed at random, and every lease interval as PostgreSQL
// saw it: a trigger notes each claim of a job and each end of it, in the transaction that makes it so.

import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { randomOf } from "./random.ts";
import { chaosJob, Trial } from "./trial.ts";
import { until } from "./until.ts";
import type { WorkerProcess } from "./worker-process.ts";

// A number is drawn after the queue is locked, and before a settle is committed: in the order of the
// numbers, whoever ends comes before whoever takes its slot.
const noteIntervals = `
  create table lease_note (n bigint generated always as identity, job uuid, lane int, change int);
  create function note_lease() returns trigger language plpgsql as $$
  begin
    if old.claim_id is not null and (tg_op = 'DELETE' or new.claim_id is distinct from old.claim_id) then
      insert into lease_note (job, lane, change) values (old.id, old.lane, -1);
    end if;
    if tg_op = 'UPDATE' and new.claim_id is not null and new.claim_id is distinct from old.claim_id then
      insert into lease_note (job, lane, change) values (new.id, new.lane, 1);
    end if;
    return null;
  end $$;
  create trigger note_lease after update or delete on millrace.job for each row execute function note_lease()`;

const mostAtOnce = `select max(held)::int as most from (
    select sum(change) over (partition by case when $1 then lane else 0 end order by n) as held from lease_note) x`;

export interface LimitRun {
  readonly processes: number;
  readonly jobs: number;
  readonly kills: number;
  readonly seed: number;
}

const concurrency = 5;
const keyConcurrency = 2;

export async function limitsUnderKills(run: LimitRun): Promise<{ kills: number; lapsed: number }> {
  const trial = await Trial.create();
  const random = randomOf(run.seed, "kills");
  try {
    const { millrace, db } = trial;
    await millrace.configureQueue("default", { concurrency, keyConcurrency });
    await db.query(noteIntervals);
    const each = Math.ceil(run.jobs / run.kills);
    const payload = () => ({ kind: "long" as const, ms: Math.round(150 + 250 * random()) });
    const send = () =>
      millrace.enqueueMany(chaosJob, Array.from({ length: each }, payload), (_, n) => ({
        limitKey: `key ${n % 7}`,
      }));
    const start = () => trial.start({ work: { concurrency: 10 } });
    const processes: WorkerProcess[] = [];
    for (let i = 0; i < run.processes; i++) processes.push(await start());
    let kills = 0;
    for (; kills < run.kills; kills++) {
      await send();
      await delay(500 * random());
      const victim = await until("somebody is at work", () => {
        const busy = processes.filter(isAtWork);
        return busy[Math.floor(random() * busy.length)];
      });
      await victim.kill();
      processes.splice(processes.indexOf(victim), 1, await start());
    }
    await trial.drained(600_000);
    expect(await most(trial, false)).toBeLessThanOrEqual(concurrency);
    expect(await most(trial, true)).toBeLessThanOrEqual(keyConcurrency);
    // Whoever was there when three processes died is a dead letter.
    const ended = (await trial.count("completed")) + (await trial.count("dead"));
    expect(ended).toBe(each * run.kills);
    await noSlotIsLost(trial);
    const lapsed = trial.ledger().filter(({ what }) => what === "job.lapsed").length;
    return { kills, lapsed };
  } finally {
    await trial.close();
  }
}

const isAtWork = (process: WorkerProcess): boolean =>
  process.of("start").length > process.of("end").length;

async function most(trial: Trial, byLane: boolean): Promise<number> {
  const { rows } = await trial.db.query<{ most: number }>(mostAtOnce, [byLane]);
  return rows[0]?.most ?? 0;
}

/** As many run at once as ever. */
async function noSlotIsLost(trial: Trial): Promise<void> {
  await trial.enqueueMany(concurrency + 3, () => ({ kind: "hold" }));
  const running = "select count(*)::int as n from millrace.job where claim_id is not null";
  await until("every slot is used", async () => {
    const { rows } = await trial.db.query<{ n: number }>(running);
    return rows[0]?.n === concurrency;
  });
}
