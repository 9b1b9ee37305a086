// Long payloads beside short ones, and beside what plain SQL makes of both.
import { endToEnd } from "../measure.mjs";
import { configOf } from "./entries.mjs";
import { runPair, system } from "./pair.mjs";

export const names = ["payload_1kb"];

const sizes = { "100 bytes": 100, "1 KB": 1024 };

async function entriesOf(context, one) {
  const config = await configOf(one, "single");
  return Object.entries(sizes).map(([label, bytes]) => ({
    scenario: "payload_1kb",
    system: one,
    config: label,
    measure: () => endToEnd(context.lab, one, config, context.scaled(100_000), { bytes }),
  }));
}

export async function run(context) {
  const systems = [system, "raw"].filter((one) => context.systems.includes(one));
  const entries = await Promise.all(systems.map((one) => entriesOf(context, one)));
  return runPair(context, entries.flat());
}
