import type { Millrace } from "../client/millrace.ts";
import { type BreakerAction, breakerActions } from "../domain/circuit-breaker.ts";
import { suggest } from "../domain/suggest.ts";
import { breakerView } from "../http/views.ts";
import type { Breaker } from "../store/breaker.ts";
import { type Command, textOption, UsageError, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { type Column, clip, table } from "./text.ts";

const help = `millrace breakers – see and work the circuit breakers

Usage: millrace breakers [list] [options]
       millrace breakers open|close|reset <name> --reason <text> [options]

A breaker stands before an outside platform and refuses calls while that fails. One that
you open stays open until you close it. A reset closes it and forgets its past; settings
stay. Each change needs a reason and leaves an audit entry.

Options:
  --reason <text>    why; needed for open, close and reset
  --actor <name>     who; stands in the audit entry (default: cli)
${databaseHelp}
  --json             one JSON line per breaker
  -h, --help         this text

Examples:
  DATABASE_URL=postgres://localhost/app npx millrace breakers
  npx millrace breakers open stripe --reason "they announced a maintenance"
  npx millrace breakers close stripe --reason "maintenance is over" --json
`;

export const breakers: Command = {
  name: "breakers",
  summary: "see circuit breakers; open, close and reset them",
  help,
  options: {
    reason: { type: "string" },
    actor: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  takesWords: true,
  verbs: ["list", ...breakerActions],
  async run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number> {
    const work = parse(words, values);
    return withMillrace(values, terminal, async (millrace) => {
      const answer = await work(millrace);
      const shown = Array.isArray(answer) ? answer : [answer];
      if (values.json === true)
        for (const one of shown) terminal.print(JSON.stringify(breakerView(one)));
      else if (!Array.isArray(answer)) terminal.print(sentence(answer));
      else if (answer.length === 0)
        terminal.printError("There are no breakers yet: one comes into being when it is used.");
      else terminal.print(listing(answer, terminal));
      return 0;
    });
  },
};

type Work = (millrace: Millrace) => Promise<Breaker | Breaker[]>;

/** Refused before anything is connected to. */
function parse([verb = "list", name, ...more]: readonly string[], values: Values): Work {
  const reason = textOption(values, "reason");
  const actor = textOption(values, "actor") ?? "cli";
  if (verb === "list") {
    if (name !== undefined) throw new UsageError(`"list" takes no name.`);
    return (millrace) => millrace.breakers.list();
  }
  if (!isAction(verb)) throw new UsageError(unknown(verb));
  if (name === undefined) throw new UsageError(`Which breaker shall I ${verb}?`);
  if (more.length > 0) throw new UsageError("One breaker at a time.");
  if (reason === undefined) throw new UsageError(`${verb} needs --reason.`);
  return (millrace) => millrace.breakers[verb](name, reason, actor);
}

const isAction = (verb: string): verb is BreakerAction =>
  (breakerActions as readonly string[]).includes(verb);

function unknown(verb: string): string {
  const meant = suggest(verb, ["list", ...breakerActions]);
  return `breakers cannot "${verb}".${meant === undefined ? "" : ` Did you mean "${meant}"?`}`;
}

const sentence = ({ name, state }: Breaker) => `The breaker "${name}" is ${state} now.`;

function listing(all: readonly Breaker[], terminal: Terminal): string {
  const columns: Column<Breaker>[] = [
    { title: "NAME", value: ({ name }) => name },
    { title: "STATE", value: ({ state }) => state },
    { title: "FAILURES", value: (one) => `${one.failures}/${one.failureThreshold}` },
    { title: "NEXT PROBE", value: nextProbe },
    { title: "SINCE", value: ({ changedAt }) => changedAt.toISOString() },
    { title: "WHY", value: (one) => clip(whyOf(one), 60) },
  ];
  return table(columns, all, terminal.isInteractive ? terminal.columns : undefined);
}

/** What it failed with is over once it is closed; why a person closed it is not. */
function whyOf({ state, cause, reason, lastError }: Breaker): string {
  if (state === "CLOSED") return cause === "manual" ? (reason ?? "") : "";
  return reason ?? lastError ?? "";
}

function nextProbe({ state, retryAfterMs, probes }: Breaker): string {
  if (state === "CLOSED") return "-";
  if (state === "HALF_OPEN") return `${probes.length} out`;
  if (retryAfterMs === null) return "when closed";
  return retryAfterMs === 0 ? "next call" : `in ${Math.ceil(retryAfterMs / 1_000)} s`;
}
