import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import { suggest } from "../domain/suggest.ts";
import type { Trigger } from "../domain/trigger.ts";
import { triggerView } from "../http/views.ts";
import { systemClock } from "../runtime/clock.ts";
import { actorOf } from "./actor.ts";
import { type Command, textOption, type Values, wholeOption } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { ago, type Column, fields, table, when } from "./text.ts";

export const triggersList: Command = {
  name: "triggers",
  summary: "which triggers there are, and when they fire next",
  help: `millrace triggers – which triggers there are, and when they fire next

Usage: millrace triggers [options]
       millrace triggers show|enable|disable <name or id> …

Options:
  --tenant <tenant>  only of this tenant
${databaseHelp}
  --json             one JSON line per trigger
  -h, --help         this text

Examples:
  npx millrace triggers
  npx millrace triggers --json | jq -r 'select(.failures > 0) | .name'
`,
  options: { tenant: { type: "string" }, ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const tenant = textOption(values, "tenant");
    return withMillrace(values, terminal, async ({ triggers }) => {
      const found = await triggers.list(tenant === undefined ? {} : { tenant });
      if (values.json === true)
        for (const one of found) terminal.print(JSON.stringify(triggerView(one, false)));
      else if (found.length === 0)
        terminal.printError("There is no trigger yet: millrace.triggers.create(…) makes one.");
      else terminal.print(listing(found, terminal));
      return 0;
    });
  },
};

function listing(found: readonly Trigger[], terminal: Terminal): string {
  const now = systemClock.now();
  const at = (date: Date | null) => (date === null ? "-" : when(date, now));
  const columns: Column<Trigger>[] = [
    { title: "NAME", value: ({ name }) => name },
    { title: "ENABLED", value: ({ enabled }) => (enabled ? "yes" : "no") },
    {
      title: "LAST",
      value: ({ lastFiredAt }) => (lastFiredAt === null ? "-" : ago(lastFiredAt, now)),
    },
    { title: "NEXT", value: ({ nextFireAt }) => at(nextFireAt) },
    { title: "WHEN", value: whenOf },
    { title: "JOB", value: ({ jobType }) => jobType },
    { title: "TENANT", value: ({ tenant }) => tenant },
    { title: "PROBLEM", value: ({ lastError }) => lastError?.message ?? "" },
  ];
  return table(columns, found, terminal.isInteractive ? terminal.columns : undefined);
}

const whenOf = ({ type, cron, timeZone, queue, batchSize }: Trigger): string =>
  type === "TIME" ? `${cron} ${timeZone}` : `${batchSize} items of "${queue}"`;

export const triggersShow: Command = {
  name: "triggers show",
  summary: "a trigger with its next fire times",
  help: `millrace triggers show – a trigger with its next fire times

Usage: millrace triggers show <name or id> [options]

Options:
  --count <n>        so many fire times (default: 5)
  --tenant <tenant>  when several tenants have a trigger of this name
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace triggers show nightly-report --count 10
`,
  operands: ["trigger"],
  options: {
    count: { type: "string" },
    tenant: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const count = wholeOption(values, "count", { min: 1, max: 1_000 }) ?? 5;
    return withMillrace(values, terminal, async (millrace) => {
      const trigger = await findTrigger(millrace, values);
      const next = trigger.enabled ? millrace.triggers.preview(trigger, { count }) : [];
      const times = next.map((date) => date.toISOString());
      if (values.json === true)
        terminal.print(JSON.stringify({ ...triggerView(trigger, false), next_fire_times: times }));
      else terminal.print(inWords(trigger, next));
      return 0;
    });
  },
};

function inWords(trigger: Trigger, next: readonly Date[]): string {
  const now = systemClock.now();
  const at = (date: Date | null) =>
    date === null ? null : `${date.toISOString()} (${when(date, now)})`;
  return fields([
    ["trigger", trigger.name],
    ["id", trigger.id],
    ["tenant", trigger.tenant],
    ["when", whenOf(trigger)],
    ["job", `${trigger.jobType} in queue "${trigger.jobQueue}"`],
    ["enabled", trigger.enabled ? "yes" : "no"],
    ["last", at(trigger.lastFiredAt)],
    ["last job", trigger.lastJobId],
    ["problem", trigger.lastError?.message],
    ["again", at(trigger.retryAt)],
    ["looks next", trigger.type === "QUEUE" ? at(trigger.nextFireAt) : null],
    ...next.map((date, i) => [i === 0 ? "next" : `  +${i}`, at(date)] as const),
  ]);
}

const switches = {
  enable: { enabled: true, summary: "let a trigger fire", done: "fires again, from now on" },
  disable: {
    enabled: false,
    summary: "keep a trigger from firing",
    done: "does not fire any more",
  },
} as const;

function createSwitch(verb: keyof typeof switches): Command {
  const { enabled, summary, done } = switches[verb];
  return {
    name: `triggers ${verb}`,
    summary,
    help: `millrace triggers ${verb} – ${summary}

Usage: millrace triggers ${verb} <name or id> [options]

What was missed while a trigger was disabled is not made up for. Leaves an audit entry.

Options:
  --tenant <tenant>  when several tenants have a trigger of this name
  --actor <name>     who; stands in the audit entry (default: cli)
${databaseHelp}
  --json             the trigger as one JSON object
  -h, --help         this text

Examples:
  npx millrace triggers ${verb} nightly-report
`,
    operands: ["trigger"],
    options: {
      tenant: { type: "string" },
      actor: { type: "string" },
      ...databaseOptions,
      json: { type: "boolean" },
    },
    async run(values: Values, terminal: Terminal): Promise<number> {
      return withMillrace(values, terminal, async (millrace) => {
        const { id } = await findTrigger(millrace, values);
        const trigger = await millrace.triggers.update(id, { enabled });
        const { tenant, name } = trigger;
        await millrace.store.service.audit.add({
          ...{ tenant, actor: actorOf(values), action: "trigger_update", target: id },
          details: { name, enabled },
        });
        if (values.json === true) terminal.print(JSON.stringify(triggerView(trigger, false)));
        else terminal.print(`Trigger "${name}" ${done}.`);
        return 0;
      });
    },
  };
}

export const triggersEnable = createSwitch("enable");
export const triggersDisable = createSwitch("disable");

async function findTrigger({ triggers }: Millrace, values: Values): Promise<Trigger> {
  const wanted = String(values.trigger);
  const tenant = textOption(values, "tenant");
  const all = await triggers.list(tenant === undefined ? {} : { tenant }, 100_000);
  const found = all.filter(({ id, name }) => id === wanted || name === wanted);
  if (found.length > 1)
    throw new MillraceError(
      "TRIGGER_NOT_FOUND",
      `${found.length} tenants have a trigger "${wanted}": name one with --tenant, or give its id.`,
    );
  if (found[0] !== undefined) return found[0];
  const meant = suggest(
    wanted,
    all.map(({ name }) => name),
  );
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  throw new MillraceError("TRIGGER_NOT_FOUND", `There is no trigger "${wanted}".${hint}`);
}
