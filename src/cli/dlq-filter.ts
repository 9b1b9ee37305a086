// Which dead letters: the same words in `dlq --letters` and in `dlq reprocess --matching`.

import { MillraceError } from "../domain/errors.ts";
import { suggest } from "../domain/suggest.ts";
import type { DeadLetterQuery } from "../store/dead-letter.ts";
import type { Store } from "../store/store.ts";
import { UsageError } from "./command.ts";

const names = ["type", "error", "class", "queue", "tenant", "category"] as const;
type Name = (typeof names)[number];

export const matchingHelp = `  type=<type>        of this job type         class=<class>      of this error class
  error=<print>      with this fingerprint    tenant=<tenant>    of this tenant
  queue=<name>       of this queue            category=<name>    of this category`;

/** For a word that is neither a command nor a condition. */
export function conditionHint(word: string): string {
  const name = suggest(word, names);
  return name === undefined
    ? `Conditions read ${names.map((one) => `${one}=…`).join(", ")}.`
    : `A condition reads ${name}=…, as in: npx millrace dlq ${name}=<${name}>.`;
}

/** Words such as `type=mail.send`; each narrows the choice. */
export function readMatching(words: readonly string[]): (store: Store) => Promise<DeadLetterQuery> {
  const given: Partial<Record<Name, string>> = {};
  for (const word of words) {
    const [, name = "", value = ""] = /^([a-z]+)=(.*)$/s.exec(word) ?? [];
    const known = names.find((one) => one === name);
    if (known === undefined || value === "") throw new UsageError(unknown(word, name));
    if (given[known] !== undefined) throw new UsageError(`${known}= stands there twice.`);
    given[known] = value;
  }
  return async (store) => ({
    tenant: given.tenant,
    type: given.type,
    category: given.category,
    fingerprint: given.error,
    errorClass: given.class,
    queueId:
      given.queue === undefined ? undefined : await queueId(store, given.queue, given.tenant),
  });
}

function unknown(word: string, name: string): string {
  const meant = suggest(name, names);
  const hint = meant === undefined ? "" : ` Did you mean ${meant}=…?`;
  return `"${word}" is no condition: they read ${names.map((one) => `${one}=…`).join(", ")}.${hint}`;
}

async function queueId({ service }: Store, name: string, tenant?: string): Promise<number> {
  const found = await service.queues.list(tenant ?? null);
  const queues = found.filter((queue) => queue.name === name);
  const own = queues.find((queue) => queue.tenant === (tenant ?? "")) ?? queues[0];
  if (own === undefined) throw new MillraceError("QUEUE_NOT_FOUND", `There is no queue "${name}".`);
  return own.id;
}
