// One entry for each configuration of each chosen system; a quick run leaves out those known to be slower.
import { adapterOf } from "../systems/index.mjs";

export async function entriesOf(context, scenario, modes, measure) {
  const entries = [];
  for (const system of context.systems) {
    const adapter = await adapterOf(system);
    for (const mode of modes) {
      for (const config of adapter.modes[mode] ?? []) {
        if (context.leadingOnly && config.slower) continue;
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
