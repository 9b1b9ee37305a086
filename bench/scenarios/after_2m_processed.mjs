// A database that has seen two million jobs, history kept, beside a fresh one.
import { steady, withStand } from "../measure.mjs";
import { Stand } from "../stand.mjs";
import { configOf } from "./entries.mjs";
import { runPair, system } from "./pair.mjs";

export const names = ["after_2m_processed"];

const scenario = "after_2m_processed";

export async function run(context) {
  const config = await configOf(system, "single");
  const count = context.scaled(100_000);
  const options = { depth: 10_000, warmUp: context.scaled(20_000) };
  let used;
  const fresh = () =>
    withStand(context.lab, system, config, { workers: 0 }, (stand) =>
      steady(stand, count, options),
    );
  const after = async () => {
    used ??= await process2m(context, config);
    return steady(used, count, options);
  };
  try {
    return await runPair(context, [
      { scenario, config: "fresh database", measure: fresh },
      { scenario, config: "after 2,000,000 processed", measure: after },
    ]);
  } finally {
    if (used) {
      context.lab.stands.delete(used);
      await used.close();
    }
  }
}

async function process2m(context, config) {
  const total = context.tiny ? 40_000 : 2_000_000;
  const stand = await Stand.open(context.lab, system, { ...config, batch: 1000 }, { workers: 1 });
  context.lab.stands.add(stand);
  const unwatch = stand.feedBack();
  await Promise.all([
    stand.produce({ count: total, bulk: true, depth: 20_000 }),
    stand.handledBy(total, 600_000),
  ]);
  unwatch();
  await stand.settled();
  await stand.removeWorkers();
  return stand;
}
