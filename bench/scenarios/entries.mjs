// One entry for each configuration of each chosen system.
import { adapterOf } from "../systems/index.mjs";

export async function entriesOf(context, scenario, modes, measure) {
  const entries = [];
  for (const system of context.systems) {
    const adapter = await adapterOf(system);
    for (const mode of modes) {
      for (const config of adapter.modes[mode] ?? []) {
        entries.push({
          scenario,
          system,
          config: config.label,
          measure: () => measure(system, config),
        });
      }
    }
  }
  return entries;
}

export async function configOf(system, mode) {
  return (await adapterOf(system)).modes[mode][0];
}
