import type { Explanation } from "../domain/waiting-reason.ts";
import { type Command, idOperand, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

const help = `millrace explain – why a job is not running

Usage: millrace explain <job> [options]

Says what holds a job back at this moment: a delay, a pause, a limit and who holds its
slots, a throttle and when it frees, its place in the order, or that nobody runs its type.
It asks the same conditions as the workers do.

Options:
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace explain 01890a5d-ac96-774b-bcce-b302099a8057
  DATABASE_URL=postgres://localhost/app npx millrace explain 01890a5d-ac96-774b-bcce-b302099a8057 --json
`;

export const explain: Command = {
  name: "explain",
  summary: "say why a job is not running",
  help,
  operands: ["job"],
  options: {
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const id = idOperand(values.job);
    return withMillrace(values, terminal, async (millrace) => {
      const told = await millrace.explain(id);
      terminal.print(values.json === true ? JSON.stringify(told) : inWords(told));
      return 0;
    });
  },
};

function inWords({ job, state, reason, text, until, holders }: Explanation): string {
  const lines = [`Job ${job} is ${state}: ${plain(text)}`, `reason:  ${reason}`];
  if (until !== null) lines.push(`until:   ${until.toISOString()}`);
  for (const holder of holders)
    lines.push(`holder:  job ${holder.job} on ${plain(holder.worker ?? "?")}`);
  return lines.join("\n");
}
