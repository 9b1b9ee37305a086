// `jobs cancel` and `jobs retry`: what one does to a single job by hand.

import { MillraceError } from "../domain/errors.ts";
import { actorHelp, actorOf, actorOptions, reasonOf } from "./actor.ts";
import { type Command, idOperand, textOption, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";

export const jobsCancel: Command = {
  name: "jobs cancel",
  summary: "cancel a job that waits or runs",
  help: `millrace jobs cancel – cancel a job that waits or runs

Usage: millrace jobs cancel <id> [options]

A job that waits is cancelled at once. One that runs is told: its handler's signal aborts, and
it is cancelled when the handler gives in; a completion that comes first wins.

Options:
  --reason <text>    why; stands with the job
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace jobs cancel 01890a5d-ac96-774b-bcce-b302099a8057 --reason "ordered twice"
`,
  operands: ["id"],
  options: { reason: { type: "string" }, ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const id = idOperand(values.id);
    const reason = textOption(values, "reason");
    return withMillrace(values, terminal, async (millrace) => {
      const result = await millrace.cancel(id, reason);
      if (result === "ended") {
        const state = (await millrace.get(id))?.state ?? "ended";
        throw new MillraceError("ILLEGAL_TRANSITION", `Job ${id} is ${state} already.`);
      }
      const words =
        result === "cancelled"
          ? `Job ${id} is cancelled.`
          : `Job ${id} runs; its handler is told to stop.`;
      terminal.print(values.json === true ? JSON.stringify({ id, result }) : words);
      return 0;
    });
  },
};

export const jobsRetry: Command = {
  name: "jobs retry",
  summary: "run a dead, cancelled or expired job again",
  help: `millrace jobs retry – run a dead, cancelled or expired job again

Usage: millrace jobs retry <id> --reason <text> [options]

Makes a new job with the old one's payload, linked to it both ways; the old one stays as it is.
For many dead letters at once: npx millrace dlq reprocess --matching.

Options:
${actorHelp}
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace jobs retry 01890a5d-ac96-774b-bcce-b302099a8057 --reason "the platform is back"
`,
  operands: ["id"],
  options: { ...actorOptions, ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const id = idOperand(values.id);
    const reason = reasonOf(values, "retry");
    return withMillrace(values, terminal, async (millrace) => {
      const made = await millrace.reprocess(id, reason, actorOf(values));
      if (values.json === true) terminal.print(JSON.stringify({ id, new_job_id: made.id }));
      else terminal.print(`Runs again as ${made.id}.`);
      return 0;
    });
  },
};
