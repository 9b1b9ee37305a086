import { expect, test } from "vitest";
import { VacuumPace } from "../../src/manager/vacuum-pace.ts";

/** After how many jobs it is done, looked at every thousand. */
async function doneAt(rows: () => number, most: number): Promise<number[]> {
  const pace = new VacuumPace(async () => rows());
  const done: number[] = [];
  for (let settled = 0; settled <= most; settled += 1_000)
    if (await pace.isDue(settled)) done.push(settled);
  return done;
}

test("after every 50,000 jobs", async () => {
  expect(await doneAt(() => 10_000, 160_000)).toEqual([50_000, 100_000, 150_000]);
});

test("after a fifth of a deep backlog", async () => {
  expect(await doneAt(() => 1_000_000, 450_000)).toEqual([200_000, 400_000]);
});

test("sooner again when the backlog has gone", async () => {
  let rows = 1_000_000;
  const done = await doneAt(() => {
    rows -= 200_000;
    return rows;
  }, 300_000);
  expect(done).toEqual([150_000, 200_000, 250_000, 300_000]);
});

test("counts are asked for no more often than that", async () => {
  let asked = 0;
  await doneAt(() => asked++, 499_000);
  expect(asked).toBe(9);
});
