import { endToEnd } from "../measure.mjs";
import { configOf } from "./entries.mjs";
import { runPair, system } from "./pair.mjs";

export const names = ["payload_1kb"];

const scenario = "payload_1kb";

export async function run(context) {
  const config = await configOf(system, "single");
  const measure = (bytes) => () =>
    endToEnd(context.lab, system, config, context.scaled(100_000), { bytes });
  return runPair(context, [
    { scenario, config: "100 bytes", measure: measure(100) },
    { scenario, config: "1 KB", measure: measure(1024) },
  ]);
}
