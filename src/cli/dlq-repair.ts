// `dlq reprocess` and `dlq discard`: one dead letter, or all that match, with their number confirmed.

import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import type { DeadLetterPlace, DeadLetterQuery } from "../store/dead-letter.ts";
import { actorHelp, actorOf, actorOptions, reasonOf } from "./actor.ts";
import { type Command, idOperand, UsageError, type Values } from "./command.ts";
import { confirm, confirmHelp, confirmOptions } from "./confirm.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { matchingHelp, readMatching } from "./dlq-filter.ts";
import { exitCodes } from "./exit-codes.ts";
import { ProgressBar } from "./progress-bar.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { count } from "./text.ts";

interface Verb {
  readonly name: "reprocess" | "discard";
  readonly summary: string;
  readonly text: string;
  repair(millrace: Millrace, id: string, reason: string, actor: string): Promise<string | null>;
}

const reprocess: Verb = {
  name: "reprocess",
  summary: "run dead letters again, as new jobs",
  text: `Each dead letter's payload becomes a new job, linked to the old one, which stays and is marked.`,
  repair: async (millrace, id, reason, actor) => (await millrace.reprocess(id, reason, actor)).id,
};

const discard: Verb = {
  name: "discard",
  summary: "close dead letters: they will not run again",
  text: "A discarded dead letter is kept as long as its queue's retention says, and never runs again.",
  async repair(millrace, id, reason, actor) {
    await millrace.discard(id, reason, actor);
    return null;
  },
};

function createRepair(verb: Verb): Command {
  const { name, summary, text } = verb;
  return {
    name: `dlq ${name}`,
    summary,
    help: `millrace dlq ${name} – ${summary}

Usage: millrace dlq ${name} <id…> --reason <text> [options]
       millrace dlq ${name} --matching <condition…> --reason <text> [options]

${text}
With --matching it counts first, says how many, and asks. Each one leaves an audit entry. Ctrl-C
stops in between; what is done is done, and the same command goes on with the rest.

Conditions (all of them must fit; all=yes for every dead letter):
${matchingHelp}

Options:
  --matching         all that fit the conditions
${actorHelp}
${confirmHelp}
${databaseHelp}
  --json             one JSON line per dead letter
  -h, --help         this text

Examples:
  npx millrace dlq ${name} 01890a5d-ac96-774b-bcce-b302099a8057 --reason "looked into it"
  npx millrace dlq ${name} --matching type=mail.send error=8c2f1b0a9d3e4f56 --reason "fixed in 2.3.1"
  npx millrace dlq ${name} --matching queue=mail --reason "looked into it" --yes --json
`,
    takesWords: true,
    options: {
      matching: { type: "boolean" },
      ...actorOptions,
      ...confirmOptions,
      ...databaseOptions,
      json: { type: "boolean" },
    },
    run: (values, terminal, words) => runRepair(verb, values, terminal, words),
  };
}

async function runRepair(
  verb: Verb,
  values: Values,
  terminal: Terminal,
  words: readonly string[],
): Promise<number> {
  const isMatching = values.matching === true;
  if (words.length === 0)
    throw new UsageError(
      isMatching
        ? "--matching needs a condition; all=yes for every dead letter."
        : "Which dead letter? Name its id; or all that fit: --matching type=…, or --matching all=yes.",
    );
  const reason = reasonOf(values, verb.name);
  const isAll = words.length === 1 && words[0] === "all=yes";
  const wanted = isMatching ? readMatching(isAll ? [] : words) : null;
  const stray = isMatching ? undefined : words.find((word) => word.includes("="));
  if (stray !== undefined)
    throw new UsageError(`"${stray}" is a condition: put --matching before.`);
  const named = wanted === null ? words.map(idOperand) : [];
  const stop = new StopRequest(terminal);
  try {
    return await withMillrace(values, terminal, async (millrace) => {
      const ids = wanted === null ? named : await matching(millrace, await wanted(millrace.store));
      if (wanted !== null) {
        if (ids.length === 0) throw new MillraceError("DEAD_LETTER_NOT_FOUND", "None matches.");
        const letters = count(ids.length, "dead letter");
        await confirm(values, terminal, `${letters} would be ${past[verb.name]}.`);
      }
      const order = { verb, ids, reason, actor: actorOf(values), strict: wanted === null };
      return repairAll(millrace, order, stop.signal, values.json === true, terminal);
    });
  } finally {
    stop.release();
  }
}

const past = { reprocess: "reprocessed", discard: "discarded" };
const page = 1_000;

/** Exactly these are counted, confirmed and repaired: who dies later is not among them. */
async function matching({ store }: Millrace, wanted: DeadLetterQuery): Promise<string[]> {
  const query = { ...wanted, status: "pending_review" as const };
  const ids: string[] = [];
  for (let before: DeadLetterPlace | null = null; ; ) {
    const { letters, next } = await store.service
      .readsOf(null)
      .deadLetters.list(query, before, page);
    for (const { id } of letters) ids.push(id);
    if (next === null) return ids;
    before = next;
  }
}

interface Order {
  readonly verb: Verb;
  readonly ids: readonly string[];
  readonly reason: string;
  readonly actor: string;
  /** Named one by one: what cannot be done is an error. Otherwise somebody else was quicker. */
  readonly strict: boolean;
}

async function repairAll(
  millrace: Millrace,
  { verb, ids, reason, actor, strict }: Order,
  stopped: AbortSignal,
  json: boolean,
  terminal: Terminal,
): Promise<number> {
  const bar = new ProgressBar(terminal, verb.name, ids.length);
  let done = 0;
  let skipped = 0;
  try {
    for (const id of ids) {
      if (stopped.aborted) break;
      try {
        const made = await verb.repair(millrace, id, reason, actor);
        done++;
        if (json) terminal.print(JSON.stringify({ dlq_id: id, new_job_id: made }));
        else if (ids.length === 1 && made !== null) terminal.print(`Runs again as ${made}.`);
      } catch (error) {
        const isGone = error instanceof MillraceError && error.code === "ILLEGAL_TRANSITION";
        if (!isGone || strict) throw error;
        skipped++;
      }
      if (ids.length > 1 && !json) bar.show(done + skipped);
    }
  } finally {
    bar.end();
  }
  const others = skipped === 0 ? "" : ` ${count(skipped, "other")} had been dealt with meanwhile.`;
  const left = ids.length - done - skipped;
  const rest = left === 0 ? "" : ` Stopped; ${left.toLocaleString("en")} are left.`;
  const said = `${count(done, "dead letter")} ${past[verb.name]}.${others}${rest}`;
  if (json) terminal.printError(said);
  else terminal.print(said);
  return left === 0 ? exitCodes.done : exitCodes.failed;
}

export const dlqReprocess = createRepair(reprocess);
export const dlqDiscard = createRepair(discard);
