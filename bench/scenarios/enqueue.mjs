import { enqueueOnly } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { entriesOf } from "./entries.mjs";

export const names = ["enqueue"];
export const quick = true;

// Configurations that differ in the consumer only are not measured twice.
export async function run(context) {
  const producing = { ...context, leadingOnly: true };
  const entries = await entriesOf(producing, "enqueue", ["single", "bulk"], (system, config) =>
    enqueueOnly(context.lab, system, config, context.scaled(config.counts.enqueue)),
  );
  return interleave(context, entries, context.rounds);
}
