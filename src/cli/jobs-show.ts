import { unknownJob } from "../client/repairs.ts";
import type { Job } from "../domain/job.ts";
import type { Explanation } from "../domain/waiting-reason.ts";
import { jobView } from "../http/views.ts";
import { systemClock } from "../runtime/clock.ts";
import { actorOf } from "./actor.ts";
import { type Command, idOperand, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { age, ago, fields, plain, plainJson, plainLines, when } from "./text.ts";

const help = `millrace jobs show – all about one job

Usage: millrace jobs show <id> [options]

Its state, why it waits, its runs one by one, and its last error. The payload is shown only
when you ask for it, and that leaves an audit entry, as it does over HTTP.

Options:
  --payload          the payload and the result as well
  --actor <name>     who reads the payload; stands in the audit entry (default: cli)
${databaseHelp}
  --json             one JSON object, as GET /api/jobs/{id} answers
  -h, --help         this text

Examples:
  npx millrace jobs show 01890a5d-ac96-774b-bcce-b302099a8057
  npx millrace jobs show 01890a5d-ac96-774b-bcce-b302099a8057 --payload --json
`;

export const jobsShow: Command = {
  name: "jobs show",
  summary: "all about one job: its runs, its error, why it waits",
  help,
  operands: ["id"],
  options: {
    payload: { type: "boolean" },
    actor: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const id = idOperand(values.id);
    const withPayload = values.payload === true;
    return withMillrace(values, terminal, async (millrace) => {
      const job = await millrace.get(id);
      if (job === null) throw unknownJob(id);
      if (withPayload)
        await millrace.store.service.audit.add({
          tenant: job.tenant,
          actor: actorOf(values),
          action: "job_payload_read",
          target: job.id,
        });
      if (values.json === true) terminal.print(JSON.stringify(jobView(job, withPayload)));
      else terminal.print(inWords(job, await millrace.explain(id), withPayload));
      return 0;
    });
  },
};

function inWords(job: Job, told: Explanation, withPayload: boolean): string {
  const parts = [
    aboutJob(job, told),
    runs(job),
    job.error === null ? "" : lastError(job.error),
    withPayload ? `payload\n${indented(plainJson(job.payload))}` : "",
    withPayload && job.result !== null ? `result\n${indented(plainJson(job.result))}` : "",
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}

export function aboutJob(job: Job, told?: Explanation): string {
  const now = systemClock.now();
  const at = (date: Date | null) =>
    date === null ? null : `${date.toISOString()} (${when(date, now)})`;
  const past = (date: Date | null) =>
    date === null ? null : `${date.toISOString()} (${ago(date, now)})`;
  const waits = told !== undefined && told.reason !== "ended" ? told.text : null;
  return fields([
    ["job", job.id],
    ["state", job.cancelRequested ? `${job.state} (cancel requested)` : job.state],
    ["why", waits],
    ["type", job.type],
    ["queue", job.queue],
    ["tenant", job.tenant],
    ["priority", `${job.meta.priority ?? "normal"} (weight ${job.weight})`],
    ["attempt", `${job.attempt} of ${job.maxAttempts}${crashes(job)}`],
    ["created", past(job.createdAt)],
    ["due", at(job.dueAt)],
    ["started", past(job.startedAt)],
    ["finished", past(job.finishedAt)],
    ["expires", at(job.expiresAt)],
    ["key", job.idempotencyKey === job.id ? null : job.idempotencyKey],
    ["reference", job.reference],
    ["correlation", job.correlationId === job.id ? null : job.correlationId],
    ["category", job.meta.category],
    ["trigger", job.meta.trigger],
    ["made from", job.meta.reprocessOf],
    ["runs again as", job.reprocessedAs],
    ["reason", job.closedReason ?? job.meta.cancelReason],
  ]);
}

const crashes = ({ crashCount }: Job): string =>
  crashCount === 0 ? "" : `, its process died ${crashCount} times`;

function runs({ timeline }: Job): string {
  if (timeline.length === 0) return "";
  const lines = timeline.map((entry) => {
    const seconds = (Date.parse(entry.endedAt) - Date.parse(entry.startedAt)) / 1_000;
    const times = entry.times === undefined || entry.times === 1 ? "" : ` ×${entry.times}`;
    const message = entry.message === undefined ? "" : `  ${plain(entry.message)}`;
    return `  ${entry.attempt}  ${entry.startedAt}  ${age(seconds).padEnd(6)}  ${entry.outcome}${times}  on ${plain(entry.worker)}${message}`;
  });
  return `runs\n${lines.join("\n")}`;
}

export function lastError(error: NonNullable<Job["error"]>): string {
  const head = fields([
    ["class", error.class],
    ["fingerprint", error.fingerprint],
    ["message", error.message],
  ]);
  const stack = error.stack === undefined ? "" : `\n${plainLines(error.stack)}`;
  return `error\n${indented(head + stack)}`;
}

export const indented = (text: string): string => text.replace(/^/gm, "  ");
