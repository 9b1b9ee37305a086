import { letterView } from "../http/views.ts";
import { systemClock } from "../runtime/clock.ts";
import type { DeadLetter, DeadLetterStatistics } from "../store/dead-letter.ts";
import type { Store } from "../store/store.ts";
import { type Command, type Values, wholeOption } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { conditionHint, matchingHelp, readMatching } from "./dlq-filter.ts";
import type { Terminal } from "./terminal.ts";
import { age, ago, type Column, count, table } from "./text.ts";

const help = `millrace dlq – dead letters: jobs that wait for a person

Usage: millrace dlq [condition…] [options]
       millrace dlq show|reprocess|discard …      (millrace dlq reprocess --help)

Shows the errors, the most frequent first, with how many dead letters each has: a hundred jobs that
died of one thing are one line. With --letters, or with conditions, it shows the dead letters
themselves, the newest first. Only those that nobody has dealt with yet.

Conditions:
${matchingHelp}

Options:
  --letters          dead letters instead of errors
  --limit <n>        how many of them (default: 20, at most 1,000)
${databaseHelp}
  --json             one JSON line per error, or per dead letter
  -h, --help         this text

Examples:
  npx millrace dlq
  npx millrace dlq error=8c2f1b0a9d3e4f56
  npx millrace dlq type=mail.send --limit 100 --json | jq -r .dlq_id
  npx millrace dlq reprocess --matching error=8c2f1b0a9d3e4f56 --reason "the platform is back"
`;

export const dlqList: Command = {
  name: "dlq",
  summary: "dead letters by error, and one by one",
  help,
  takesWords: true,
  wordHint: conditionHint,
  options: {
    letters: { type: "boolean" },
    limit: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number> {
    const wanted = readMatching(words);
    const limit = wholeOption(values, "limit", { min: 1, max: 1_000 }) ?? 20;
    const json = values.json === true;
    return withMillrace(values, terminal, async ({ store }) => {
      if (values.letters !== true && words.length === 0) await printErrors(store, json, terminal);
      else {
        const query = { ...(await wanted(store)), status: "pending_review" as const };
        const { letters, next } = await store.service
          .readsOf(null)
          .deadLetters.list(query, null, limit);
        if (json) for (const one of letters) terminal.print(JSON.stringify(letterView(one)));
        else if (letters.length === 0) terminal.printError("No dead letter fits.");
        else printLetters(letters, next !== null, terminal);
      }
      return 0;
    });
  },
};

type Group = DeadLetterStatistics["fingerprints"][number];

async function printErrors({ service }: Store, json: boolean, terminal: Terminal): Promise<void> {
  const found = await service.readsOf(null).deadLetters.statistics(undefined);
  if (json) {
    for (const { fingerprint, count, message, lastAt } of found.fingerprints)
      terminal.print(
        JSON.stringify({
          ...{ error_fingerprint: fingerprint, count, error_message: message },
          last_at: lastAt.toISOString(),
        }),
      );
    return;
  }
  const pending = found.byStatus.pending_review ?? 0;
  if (pending === 0) return terminal.printError("No dead letter waits for anybody.");
  const now = systemClock.now();
  const columns: Column<Group>[] = [
    { title: "LETTERS", value: (group) => group.count.toLocaleString("en"), right: true },
    { title: "ERROR", value: ({ fingerprint }) => fingerprint },
    { title: "LAST", value: ({ lastAt }) => ago(lastAt, now) },
    { title: "MESSAGE", value: ({ message }) => message },
  ];
  terminal.print(table(columns, found.fingerprints, widthOf(terminal)));
  const oldest = found.oldestPendingSeconds;
  terminal.printError(
    `${count(pending, "dead letter")}${oldest === null ? "" : `, the oldest for ${age(oldest)}`}. See them: npx millrace dlq error=<ERROR>`,
  );
}

const widthOf = (terminal: Terminal) => (terminal.isInteractive ? terminal.columns : undefined);

function printLetters(letters: readonly DeadLetter[], isMore: boolean, terminal: Terminal): void {
  const now = systemClock.now();
  const columns: Column<DeadLetter>[] = [
    { title: "ID", value: ({ id }) => id },
    { title: "TYPE", value: ({ type }) => type },
    { title: "QUEUE", value: ({ queue }) => queue },
    { title: "TENANT", value: ({ tenant }) => tenant },
    { title: "TRIES", value: ({ attempt }) => String(attempt), right: true },
    { title: "DIED", value: ({ diedAt }) => ago(diedAt, now) },
    { title: "ERROR", value: ({ errorClass, errorMessage }) => `${errorClass}: ${errorMessage}` },
  ];
  terminal.print(table(columns, letters, widthOf(terminal)));
  if (isMore) terminal.printError(`The newest ${letters.length} are shown; --limit shows more.`);
}
