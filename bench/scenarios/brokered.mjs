// Direct beside brokered dispatch, one producer and more and more worker processes; pickup on the idle queue.
import { endToEnd } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { adapterOf } from "../systems/index.mjs";
import { system } from "./pair.mjs";

export const names = ["brokered"];

export async function run(context) {
  if (!context.systems.includes(system)) return [];
  const samples = context.tiny ? 20 : Math.ceil(200 / context.rounds);
  const { modes } = await adapterOf(system);
  const entries = [];
  for (const workers of [1, 2, 4, 8, 16]) {
    for (const config of modes.dispatch) {
      entries.push({
        scenario: "brokered",
        system,
        config: `${config.label}, ${workers} worker${workers > 1 ? "s" : ""}`,
        measure: () =>
          endToEnd(context.lab, system, config, context.scaled(16_000), { workers, samples }),
      });
    }
  }
  return interleave(context, entries, context.rounds);
}
