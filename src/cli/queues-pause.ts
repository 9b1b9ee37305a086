import { actorHelp, actorOf, actorOptions } from "./actor.ts";
import { type Command, textOption, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { needQueue } from "./queue-lookup.ts";
import type { Terminal } from "./terminal.ts";

const verbs = {
  pause: {
    paused: true,
    summary: "let no further job of a queue start",
    text: `From now on no job of the queue starts, on whichever worker. What runs goes on to its end;
jobs may still be enqueued, and wait.`,
    example: `--reason "the bank's maintenance"`,
    done: "is paused: what runs goes on, nothing new starts. Resume it with: npx millrace queues resume",
  },
  resume: {
    paused: false,
    summary: "let the jobs of a paused queue start again",
    text: "The jobs that wait in a paused queue start again, on whichever worker.",
    example: `--reason "maintenance is over"`,
    done: "runs again.",
  },
} as const;

function createPause(verb: keyof typeof verbs): Command {
  const { paused, summary, text, example, done } = verbs[verb];
  return {
    name: `queues ${verb}`,
    summary,
    help: `millrace queues ${verb} – ${summary}

Usage: millrace queues ${verb} <queue> [options]

${text} Leaves an audit entry.

Options:
  --tenant <tenant>  this tenant's own queue of that name
${actorHelp}
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace queues ${verb} mail ${example}
`,
    operands: ["queue"],
    options: {
      tenant: { type: "string" },
      ...actorOptions,
      ...databaseOptions,
      json: { type: "boolean" },
    },
    async run(values: Values, terminal: Terminal): Promise<number> {
      const name = String(values.queue);
      const tenant = textOption(values, "tenant") ?? "";
      const reason = textOption(values, "reason");
      return withMillrace(values, terminal, async (millrace) => {
        const { paused: wasPaused } = await needQueue(millrace, tenant, name);
        if (wasPaused === paused) {
          if (values.json === true) terminal.print(JSON.stringify({ name, paused }));
          else terminal.print(`Queue "${name}" is ${paused ? "paused already" : "not paused"}.`);
          return 0;
        }
        const queue = await millrace.store.pauseQueue(tenant, name, paused);
        await millrace.store.service.audit.add({
          tenant: tenant === "" ? null : tenant,
          actor: actorOf(values),
          action: `queue_${verb}`,
          target: String(queue.id),
          ...(reason === undefined ? {} : { reason }),
        });
        if (values.json === true) terminal.print(JSON.stringify({ name, paused: queue.paused }));
        else terminal.print(`Queue "${name}" ${done}${paused ? ` ${name}` : ""}`);
        return 0;
      });
    },
  };
}

export const queuesPause = createPause("pause");
export const queuesResume = createPause("resume");
