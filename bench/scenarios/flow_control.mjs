// Each feature of flow control beside a queue that uses none, one producer and one worker.
import { endToEnd } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { adapterOf } from "../systems/index.mjs";
import { system } from "./pair.mjs";

export const names = ["flow_control"];

export async function run(context) {
  if (!context.systems.includes(system)) return [];
  const { modes } = await adapterOf(system);
  const entries = modes.features.map((config) => ({
    scenario: "flow_control",
    system,
    config: config.label,
    measure: () => endToEnd(context.lab, system, config, context.scaled(60_000)),
  }));
  return interleave(context, entries, context.rounds);
}
