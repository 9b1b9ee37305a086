import { idleStand } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { adapterOf } from "../systems/index.mjs";

export const names = ["pickup_idle"];
export const quick = true;

const places = [
  { place: "across connections", local: false },
  { place: "same process", local: true },
];

// A machine that others share is quick for some seconds and slow for others, by as much as systems differ. So all of
// them stand side by side, and each round takes a few samples of each: at least 300 in all.
const minimumRounds = 33;
const wantedSamples = 330;
const warmUpSamples = 150;

// The raw probe has no wake-ups: it takes no part.
export async function run(context) {
  const rounds = context.tiny ? context.rounds : Math.max(minimumRounds, context.rounds);
  const samples = context.tiny ? 5 : Math.ceil(wantedSamples / rounds);
  const warmUp = context.tiny ? samples : warmUpSamples;
  const systems = context.systems.filter((name) => name !== "raw");
  const results = [];
  for (const { place, local } of places) {
    const entries = [];
    for (const system of systems) {
      const { modes } = await adapterOf(system);
      for (const config of modes.idle.filter(({ localOnly }) => local || !localOnly)) {
        const stand = idleStand(context.lab, system, config, { local, warmUp });
        entries.push({
          ...{ scenario: "pickup_idle", system, config: `${place}: ${config.label}`, stand },
          measure: () => stand.measure(samples),
        });
      }
    }
    try {
      results.push(...(await interleave(context, entries, rounds)));
    } finally {
      await Promise.all(entries.map(({ stand }) => stand.close()));
    }
  }
  return results;
}
