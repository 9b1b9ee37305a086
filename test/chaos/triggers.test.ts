// Trigger runners killed with SIGKILL right after each step of their transactions.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { dead, Stage } from "../conformance/stage.ts";
import { Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

const program = fileURLToPath(new URL("../processes/trigger-runner.mjs", import.meta.url));
const item = defineJob({ type: "item", queue: "inbox" });
const made = defineJob({ type: "made", queue: "made", run: () => {} });

let trial: Trial;
let runners: ChildProcess[];
beforeEach(async () => {
  trial = await Trial.create();
  runners = [];
});
afterEach(async () => {
  for (const runner of runners) await kill(runner);
  await trial.close();
});

const isOver = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

async function kill(child: ChildProcess): Promise<void> {
  if (isOver(child)) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

function startRunner(dies: { diesAfter?: string; diesIn?: string } = {}): ChildProcess {
  const argument = JSON.stringify({ url: trial.url, ...dies });
  const child = fork(program, [argument], { execArgv: [] });
  runners.push(child);
  return child;
}

/** Starts a runner, which kills itself right after the step, and waits until its locks are gone. */
async function diesAfter(step: string, diesIn: string): Promise<void> {
  const [code, signal] = (await once(
    startRunner({ diesAfter: step, diesIn }),
    "exit",
  )) as unknown[];
  expect([code, signal]).toEqual([null, "SIGKILL"]);
  await until(
    "the dead runner's connection is gone",
    async () => (await rows(leftovers)).length === 0,
  );
}

const leftovers = `select from pg_stat_activity
  where datname = current_database() and application_name = 'millrace triggers'`;

const rows = async <R extends object>(text: string): Promise<R[]> =>
  (await trial.db.query(text)).rows as R[];

/** Ids of all jobs that triggers made, wherever they are by now, with the items they were given. */
async function madeJobs(): Promise<{ id: string; items: string[] | null }[]> {
  const tables = ["job", "scheduled_job", "dead_job", "history"];
  const parts = tables.map(
    (table) =>
      `select id, payload->'queue_item_ids' as items from millrace.${table} where type = 'made'`,
  );
  return rows(parts.join(" union all "));
}

describe("a queue trigger whose runner is killed", () => {
  async function prepare(): Promise<string[]> {
    const { triggers } = trial.millrace;
    const options = { name: "inbox", type: "QUEUE", queue: "inbox", batchSize: 3 } as const;
    const enqueued = await trial.millrace.enqueueMany(item, [{ n: 1 }, { n: 2 }, { n: 3 }]);
    await triggers.create({ ...options, pollingIntervalMs: 1_000, job: made });
    return enqueued.map(({ id }) => id);
  }

  const lastProcessed = async () =>
    (await trial.millrace.triggers.list({ name: "inbox" }))[0]?.lastProcessedItemId ?? null;

  /** Each item is in one job; nothing is held, claimed or open once that job has ended. */
  async function allEndWell(items: readonly string[], state: string): Promise<void> {
    for (const id of items) expect((await trial.end(id)).state).toBe(state);
    const jobs = await madeJobs();
    expect(jobs.flatMap((job) => job.items ?? []).sort()).toEqual([...items].sort());
    expect(await lastProcessed()).toBe(items.at(-1));
    await until(
      "the batch is closed",
      async () => (await rows("select from millrace.trigger_batch")).length === 0,
    );
    expect(await rows("select from millrace.claim where lease_id is null")).toEqual([]);
    for (const id of items) expect(await endRows(id)).toBe(1);
  }

  const endRows = async (id: string) =>
    (
      await rows(
        `select from millrace.history where id = '${id}' union all select from millrace.dead_job where id = '${id}'`,
      )
    ).length;

  test.each([
    "begin",
    "trigger_lock_due",
    "trigger_take_items",
    "enqueue_general",
    "trigger_move_on",
    "before commit",
  ])("after %s has taken nothing: the items are ready, and go into one job later", async (step) => {
    const items = await prepare();
    await diesAfter(step, step === "begin" ? "begin" : "trigger_lock_due");
    expect(await madeJobs()).toEqual([]);
    expect(await lastProcessed()).toBeNull();
    for (const id of items) expect((await trial.job(id)).state).toBe("ready");
    startRunner();
    await trial.millrace.work([made]);
    await allEndWell(items, "completed");
  });

  test("after the commit has handed all of them to one job, which lives on", async () => {
    const items = await prepare();
    await diesAfter("commit", "trigger_take_items");
    const [job, ...others] = await madeJobs();
    expect(others).toEqual([]);
    expect(job?.items).toEqual(items);
    for (const id of items) expect((await trial.job(id)).state).toBe("running");
    startRunner();
    await trial.millrace.work([made]);
    await allEndWell(items, "completed");
  });

  test.each([
    ["completed", "trigger_lock_batch"],
    ["completed", "trigger_read_end"],
    ["completed", "trigger_read_items"],
    ["completed", "trigger_complete_items"],
    ["completed", "trigger_close_batch"],
    ["completed", "before commit"],
    ["completed", "commit"],
    ["dead", "settle_held_deaths_counted"],
    ["dead", "trigger_close_batch"],
    ["dead", "commit"],
  ] as const)("while it ends items as %s, after %s: they end once", async (state, step) => {
    const items = await prepare();
    await diesAfter("commit", "trigger_take_items");
    await endJob(state);
    for (const id of items) expect((await trial.job(id)).state).toBe("running");
    await diesAfter(step, "trigger_lock_batch");
    startRunner();
    await allEndWell(items, state);
  });

  /** By bare turns of the store: a worker would bring a runner of its own. */
  async function endJob(state: "completed" | "dead"): Promise<void> {
    const { store } = trial.millrace;
    const unused = () => Promise.reject(new Error("not used here"));
    const stage = new Stage({ store, sql: unused, session: unused, close: async () => {} });
    const [queue] = await store.ensureQueues("", ["made"]);
    const [job] = await stage.claim(queue?.id ?? 0);
    if (job === undefined) throw new Error("the job is not ready");
    if (state === "completed") await stage.complete([job]);
    else await stage.settle(job, dead);
    await stage.close();
  }
});

describe("a time trigger whose runner is killed", () => {
  /** It owes one slot of this year, a moment ago. */
  async function prepare(): Promise<{ id: string; slot: Date }> {
    const slot = new Date(Math.floor((await trial.now()) / 1000) * 1000 - 5_000);
    const time = `${slot.getUTCSeconds()} ${slot.getUTCMinutes()} ${slot.getUTCHours()}`;
    const cron = `${time} ${slot.getUTCDate()} ${slot.getUTCMonth() + 1} *`;
    const options = { name: "yearly", type: "TIME", cron, missedSlots: "last" } as const;
    const { id } = await trial.millrace.triggers.create({ ...options, job: made });
    await trial.db.query("update millrace.trigger set next_fire_at = $1", [slot]);
    return { id, slot };
  }

  const steps = "begin trigger_lock_due trigger_take_slots enqueue_general trigger_slots_done";
  test.each([...steps.split(" "), "trigger_forget_slots", "before commit", "commit"])(
    "after %s: its slot makes one job",
    async (step) => {
      const { id, slot } = await prepare();
      await diesAfter(step, step === "begin" ? "begin" : "trigger_lock_due");
      expect(await madeJobs()).toHaveLength(step === "commit" ? 1 : 0);
      // Two at once, as when one leader does not know yet that it is none.
      startRunner();
      startRunner();
      await until("it has moved on", async () => {
        const trigger = await trial.millrace.triggers.get(id);
        return trigger?.nextFireAt !== null && (trigger?.nextFireAt ?? slot) > slot;
      });
      const [job, ...others] = await madeJobs();
      expect(others).toEqual([]);
      expect((await trial.job(job?.id ?? "")).meta.slot).toBe(slot.toISOString());
      expect((await trial.millrace.triggers.get(id))?.lastJobId).toBe(job?.id);
    },
  );
});
