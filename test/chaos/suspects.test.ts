import { afterEach, beforeEach, expect, test } from "vitest";
import { Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
  // Takes back what the others leave, and runs none of it.
  await trial.start({ types: [{ type: "other" }] });
});
afterEach(() => trial.close());

const innocents = [{ type: "innocent" }];
const inOneWorker = { types: [{ type: "chaos" }, ...innocents] };
const inTwoWorkers = { types: [{ type: "chaos" }], besides: innocents };

/** A job that was there when this many processes died. */
async function blamed(deaths: number, ms = 2_000): Promise<string> {
  const id = await trial.enqueue({ kind: "long", ms }, "innocent");
  for (let died = 0; died < deaths; died++) {
    const process = await trial.start({ types: innocents });
    await process.writes("start");
    await process.kill();
  }
  return id;
}

/** Another one that runs in a process of its own, for longer than the last lease. */
async function killerFirst(workers: typeof inOneWorker | typeof inTwoWorkers) {
  const killer = await trial.enqueue({ kind: "die_after", ms: 7_000, once: true });
  const process = await trial.start(workers);
  await process.writes("start", ({ job }) => job === killer);
  return { killer, process };
}

const isHeld = async (id: string) =>
  (await trial.db.query("select from millrace.job where id = $1 and claim_id is not null", [id]))
    .rowCount === 1;

for (const [where, workers] of Object.entries({ inOneWorker, inTwoWorkers })) {
  test(`fault 28: who waits because it was there twice is not charged for what runs before it, ${where}`, async () => {
    const innocent = await blamed(2);
    const { killer, process } = await killerFirst(workers);
    await until("it waits", () => isHeld(innocent));
    await process.ended();
    expect(process.of("start").map(({ job }) => job)).toEqual([killer]);
    await trial.start(workers);
    expect(await trial.end(innocent)).toMatchObject({ state: "completed", crashCount: 2 });
    expect(await trial.end(killer)).toMatchObject({ state: "completed", crashCount: 1 });
    expect(trial.about(innocent, "start")).toHaveLength(3);
  });
}

test("fault 28: what ran before a suspect began beside it does not kill for free", async () => {
  const innocent = await blamed(1, 8_000);
  const { killer, process } = await killerFirst(inOneWorker);
  await process.writes("start", ({ job }) => job === innocent);
  await process.ended();
  await trial.start(inOneWorker);
  expect(await trial.end(innocent)).toMatchObject({ state: "completed", crashCount: 2 });
  expect(await trial.end(killer)).toMatchObject({ state: "completed", crashCount: 1 });
});
