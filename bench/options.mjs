import { parseArgs } from "node:util";
import { scenarioNames } from "./scenarios/names.mjs";
import { systemNames } from "./systems/index.mjs";

export const help = `Millrace beside its peers, in one run.

  npm run bench -- [options]

  --quick              enqueue, both end-to-end scenarios and pickup_idle, smaller counts: under five minutes
  --only <a,b>         these scenarios only
  --systems <a,b>      these systems only
  --rounds <n>         rounds of each scenario (default 3; pairs run at least 7)
  --scale <x>          multiplies the numbers of jobs (default 1)
  --tiny               very small counts, to see that everything runs; the numbers mean nothing
  --out <name>         writes results/<name>.json, .md and .svg (default latest)
  --no-build           uses dist/ as it is
  --help

Scenarios: ${scenarioNames.join(", ")}
Systems:   ${systemNames.join(", ")}
Results:   bench/results/latest.json, latest.md, latest.svg`;

class UsageError extends Error {}

function listed(text, known, what) {
  if (text === undefined) return known;
  const wanted = text.split(",").map((name) => name.trim());
  for (const name of wanted) {
    if (!known.includes(name))
      throw new UsageError(`unknown ${what} ${name}; known: ${known.join(", ")}`);
  }
  return wanted;
}

function positive(text, what) {
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`${what} must be a positive number`);
  return value;
}

export function parseOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      systems: { type: "string" },
      rounds: { type: "string", default: "3" },
      scale: { type: "string" },
      tiny: { type: "boolean", default: false },
      out: { type: "string", default: "latest" },
      "no-build": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const defaultScale = values.tiny ? 0.02 : values.quick ? 0.2 : 1;
  return Object.freeze({
    help: values.help,
    quick: values.quick,
    tiny: values.tiny,
    only: values.only === undefined ? undefined : listed(values.only, scenarioNames, "scenario"),
    systems: listed(values.systems, systemNames, "system"),
    rounds: Math.ceil(positive(values.rounds, "--rounds")),
    scale: values.scale === undefined ? defaultScale : positive(values.scale, "--scale"),
    out: values.out,
  });
}
