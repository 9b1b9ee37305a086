// One producer in bulk, and one, two and four worker processes, for every system's best configuration.
import { endToEnd } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { configOf } from "./entries.mjs";

export const names = ["workers_1_2_4"];

export async function run(context) {
  const entries = [];
  for (const system of context.systems) {
    const config = await configOf(system, "bulk");
    for (const workers of [1, 2, 4]) {
      entries.push({
        scenario: "workers_1_2_4",
        system,
        config: `${workers} worker${workers > 1 ? "s" : ""}: ${config.label}`,
        measure: () =>
          endToEnd(context.lab, system, config, context.scaled(config.counts.end_to_end), {
            workers,
          }),
      });
    }
  }
  return interleave(context, entries, context.rounds);
}
