import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Command, CommandError, type Values } from "./command.ts";

const help = `millrace bench – Millrace beside its peers, on this machine

Usage: millrace bench [options]

The bench installs other queues and servers to compare with, so it is in the repository and not in the
npm package. In a checkout this is the same as npm run bench.

Options:
  --quick            under five minutes
  -h, --help         this text

Examples:
  npx millrace bench --quick
`;

export const bench: Command = {
  name: "bench",
  summary: "Millrace beside its peers (in a checkout of the repository)",
  help,
  options: { quick: { type: "boolean" } },
  async run(values: Values): Promise<number> {
    const script = fileURLToPath(new URL("../../bench/start.mjs", import.meta.url));
    if (!existsSync(script))
      throw new CommandError(
        "The bench is not in the npm package: it compares with other queues, which it would have to bring.",
        "In a checkout of Millrace's repository: npm ci && npm run bench -- --quick",
      );
    const args = values.quick === true ? ["--quick"] : [];
    const child = spawn(process.execPath, [script, ...args], { stdio: "inherit" });
    const [code] = await once(child, "exit");
    return typeof code === "number" ? code : 1;
  },
};
