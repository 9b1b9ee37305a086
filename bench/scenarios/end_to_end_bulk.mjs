import { endToEnd } from "../measure.mjs";
import { interleave, manyRounds } from "../rounds.mjs";
import { entriesOf } from "./entries.mjs";

export const names = ["end_to_end_bulk"];
export const quick = true;

export async function run(context) {
  const entries = await entriesOf(context, "end_to_end_bulk", ["bulk"], (system, config) =>
    endToEnd(context.lab, system, config, context.scaled(config.counts.end_to_end)),
  );
  return interleave(context, entries, manyRounds(context));
}
