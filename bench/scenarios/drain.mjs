import { drain } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { entriesOf } from "./entries.mjs";

export const names = ["drain"];

export async function run(context) {
  const entries = await entriesOf(context, "drain", ["single", "bulk"], (system, config) =>
    drain(context.lab, system, config, context.scaled(config.counts.drain)),
  );
  return interleave(context, entries, context.rounds);
}
