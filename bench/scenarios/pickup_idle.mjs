import { pickup } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { adapterOf } from "../systems/index.mjs";

export const names = ["pickup_idle"];
export const quick = true;

const places = [
  { place: "across connections", local: false },
  { place: "same process", local: true },
];

// At least 300 samples for each, spread over the rounds. The raw probe has no wake-ups: it takes no part.
export async function run(context) {
  const samples = context.tiny ? 20 : Math.ceil(330 / context.rounds);
  const entries = [];
  for (const system of context.systems.filter((name) => name !== "raw")) {
    const { modes } = await adapterOf(system);
    for (const config of modes.idle) {
      for (const { place, local } of places) {
        entries.push({
          scenario: "pickup_idle",
          system,
          config: `${place}: ${config.label}`,
          measure: () => pickup(context.lab, system, config, samples, { local }),
        });
      }
    }
  }
  return interleave(context, entries, context.rounds);
}
