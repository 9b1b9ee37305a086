// The same flow through a shallow and a deep backlog. Each keeps its database for all rounds.
import { steady } from "../measure.mjs";
import { Stand } from "../stand.mjs";
import { configOf } from "./entries.mjs";
import { runPair, system } from "./pair.mjs";

export const names = ["backlog_10k", "backlog_1m"];

export async function run(context) {
  const config = await configOf(system, "single");
  const stands = new Map();
  const entry = (scenario, depth) => ({
    scenario,
    config: `${depth.toLocaleString("en")} waiting, concurrency 200`,
    async measure() {
      if (!stands.has(scenario)) {
        stands.set(scenario, await Stand.open(context.lab, system, config, { workers: 0 }));
        context.lab.stands.add(stands.get(scenario));
      }
      return steady(stands.get(scenario), context.scaled(100_000), {
        depth,
        warmUp: context.scaled(20_000),
      });
    },
  });
  try {
    return await runPair(context, [
      entry("backlog_10k", 10_000),
      entry("backlog_1m", context.tiny ? 50_000 : 1_000_000),
    ]);
  } finally {
    for (const stand of stands.values()) {
      context.lab.stands.delete(stand);
      await stand.close();
    }
  }
}
