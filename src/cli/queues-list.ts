import type { QueueFigures } from "../store/queue-admin.ts";
import type { Command, Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { age, type Column, table } from "./text.ts";

const help = `millrace queues – how each queue does

Usage: millrace queues [options]
       millrace queues show|set|pause|resume <name> …      (millrace queues set --help)

WAITING is delayed and ready together; OLDEST is how long the oldest ready job has been ready;
DEAD is how many dead letters there are. Reads counters and indexes only, so it may be asked as
often as you like.

Options:
${databaseHelp}
  --json             one JSON line per queue
  -h, --help         this text

Examples:
  npx millrace queues
  npx millrace queues --json | jq -r 'select(.waiting > 1000) | .name'
`;

export const queuesList: Command = {
  name: "queues",
  summary: "how each queue does: waiting, running, oldest, dead",
  help,
  options: { ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    return withMillrace(values, terminal, async ({ store }) => {
      const queues = await store.service.queues.figures();
      if (values.json === true) for (const queue of queues) terminal.print(figuresJson(queue));
      else if (queues.length === 0)
        terminal.printError(
          "There is no queue yet: one is made by the first job enqueued into it.",
        );
      else terminal.print(table(columns, queues));
      return 0;
    });
  },
};

const number = (value: number) => value.toLocaleString("en");

export const stateOf = ({ isActive, paused }: QueueFigures): string =>
  !isActive ? "inactive" : paused ? "paused" : "active";

const columns: readonly Column<QueueFigures>[] = [
  { title: "QUEUE", value: ({ name }) => name },
  { title: "TENANT", value: ({ tenant }) => (tenant === "" ? "(all)" : tenant) },
  { title: "STATE", value: stateOf },
  { title: "WAITING", value: ({ waiting }) => number(waiting), right: true },
  { title: "RUNNING", value: ({ running }) => number(running), right: true },
  { title: "OLDEST", value: (queue) => oldest(queue), right: true },
  { title: "COMPLETED", value: ({ completed }) => number(completed), right: true },
  { title: "RETRIED", value: ({ retried }) => number(retried), right: true },
  { title: "DEAD", value: ({ dead }) => number(dead), right: true },
];

const oldest = ({ oldestReadySeconds }: QueueFigures): string =>
  oldestReadySeconds === null ? "-" : age(oldestReadySeconds);

const figuresJson = (queue: QueueFigures): string =>
  JSON.stringify({
    id: queue.id,
    name: queue.name,
    tenant_id: queue.tenant === "" ? null : queue.tenant,
    state: stateOf(queue),
    waiting: queue.waiting,
    running: queue.running,
    oldest_ready_seconds: queue.oldestReadySeconds,
    enqueued: queue.enqueued,
    completed: queue.completed,
    retried: queue.retried,
    died: queue.died,
    dead: queue.dead,
  });
