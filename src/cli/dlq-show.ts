import { MillraceError } from "../domain/errors.ts";
import { jobView } from "../http/views.ts";
import { actorOf } from "./actor.ts";
import { type Command, idOperand, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { aboutJob, indented, lastError } from "./jobs-show.ts";
import type { Terminal } from "./terminal.ts";
import { plainJson } from "./text.ts";

const help = `millrace dlq show – a dead letter with its payload and its error

Usage: millrace dlq show <id> [options]

Reading a payload leaves an audit entry, as it does over HTTP.

Options:
  --actor <name>     who reads it; stands in the audit entry (default: cli)
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace dlq show 01890a5d-ac96-774b-bcce-b302099a8057
`;

export const dlqShow: Command = {
  name: "dlq show",
  summary: "a dead letter with its payload and its error",
  help,
  operands: ["id"],
  options: { actor: { type: "string" }, ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const id = idOperand(values.id);
    return withMillrace(values, terminal, async (millrace) => {
      const job = await millrace.get(id);
      if (job === null || (job.state !== "dead" && job.state !== "discarded"))
        throw new MillraceError("DEAD_LETTER_NOT_FOUND", `There is no dead letter ${id}.`);
      await millrace.store.service.audit.add({
        tenant: job.tenant,
        actor: actorOf(values),
        action: "job_dlq_read",
        target: job.id,
      });
      if (values.json === true) terminal.print(JSON.stringify(jobView(job, true)));
      else {
        const error = job.error === null ? [] : [lastError(job.error)];
        const payload = `payload\n${indented(plainJson(job.payload))}`;
        terminal.print([aboutJob(job), ...error, payload].join("\n\n"));
      }
      return 0;
    });
  },
};
