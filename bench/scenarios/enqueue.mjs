import { enqueueOnly } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { entriesOf } from "./entries.mjs";

export const names = ["enqueue"];
export const quick = true;

// Where two configurations differ in the consumer only, the first stands for both.
export async function run(context) {
  const entries = await entriesOf(context, "enqueue", ["single", "bulk"], (system, config) =>
    enqueueOnly(context.lab, system, config, context.scaled(config.counts.enqueue)),
  );
  const wanted = entries.filter(({ config }) => !/one by one/.test(config));
  return interleave(context, wanted, context.rounds);
}
