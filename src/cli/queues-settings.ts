// A queue's settings, by the names that they have over HTTP.

import { queueFields, wireToSettings } from "../client/http/queue-wire.ts";
import { checkQueueSettings } from "../client/queue-settings.ts";
import { suggest } from "../domain/suggest.ts";
import { queueView } from "../http/views.ts";
import type { QueueRecord } from "../store/queue-admin.ts";
import { actorHelp, actorOf, actorOptions } from "./actor.ts";
import { type Command, durationOf, textOption, UsageError, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { needQueue } from "./queue-lookup.ts";
import type { Terminal } from "./terminal.ts";
import { fields } from "./text.ts";

const tenantHelp = "  --tenant <tenant>  this tenant's own queue of that name";

export const queuesShow: Command = {
  name: "queues show",
  summary: "a queue's settings: limits, rates, retries, retention",
  help: `millrace queues show – a queue's settings

Usage: millrace queues show <queue> [options]

The names are those of the HTTP service, and those that "millrace queues set" takes.

Options:
${tenantHelp}
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace queues show mail
  npx millrace queues show mail --json | jq .concurrency
`,
  operands: ["queue"],
  options: { tenant: { type: "string" }, ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const tenant = textOption(values, "tenant") ?? "";
    return withMillrace(values, terminal, async (millrace) => {
      print(await needQueue(millrace, tenant, String(values.queue)), values, terminal);
      return 0;
    });
  },
};

export const queuesSet: Command = {
  name: "queues set",
  summary: "change a queue's settings",
  help: `millrace queues set – change a queue's settings

Usage: millrace queues set <queue> <setting>=<value> … [options]

What is not named stays as it is. A value is a number, yes or no, a rate such as 100/60s (so
many in such a time), a text, or none. Other processes hear of it at once, or within five
seconds. Leaves an audit entry.

Settings:
  concurrency, key_concurrency               how many run at once
  throttle, key_throttle                     how many start in a time
  rate_limit, tenant_rate_limit              how many may be enqueued in a time
  capacity, tenant_capacity, warn_depth      how many may be there
  ageing_step_ms, fair                       who goes first
  dead_letter_blocks_key                     whether a dead letter holds up its ordering key
  max_retries, enforce_unique_reference, is_active, description, key_ttl_seconds,
  retention_days, dead_retention_days, timeline_retention_days

Options:
${tenantHelp}
${actorHelp}
${databaseHelp}
  --json             the queue as one JSON object
  -h, --help         this text

Examples:
  npx millrace queues set mail concurrency=20 throttle=100/60s
  npx millrace queues set mail throttle=none --reason "the provider has lifted its limit"
`,
  options: {
    tenant: { type: "string" },
    ...actorOptions,
    ...databaseOptions,
    json: { type: "boolean" },
  },
  takesWords: true,
  async run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number> {
    const [name, ...given] = words;
    if (name === undefined) throw new UsageError("Which queue?");
    const changes = readChanges(given);
    const settings = wireToSettings(changes);
    checkQueueSettings(settings);
    const tenant = textOption(values, "tenant") ?? "";
    const reason = textOption(values, "reason");
    return withMillrace(values, terminal, async (millrace) => {
      const { id } = await needQueue(millrace, tenant, name);
      await millrace.store.configureQueue(tenant, name, settings);
      await millrace.store.service.audit.add({
        ...{ tenant: tenant === "" ? null : tenant, actor: actorOf(values) },
        ...{ action: "queue_update", target: String(id) },
        ...(reason === undefined ? {} : { reason }),
        details: { changed: Object.keys(changes) },
      });
      print(await needQueue(millrace, tenant, name), values, terminal);
      return 0;
    });
  },
};

function readChanges(given: readonly string[]): Record<string, unknown> {
  if (given.length === 0) throw new UsageError("Which setting? For example concurrency=5.");
  return Object.fromEntries(
    given.map((word) => {
      const [, name = "", text = ""] = /^([^=]*)=(.*)$/s.exec(word) ?? [];
      if (name === "") throw new UsageError(`"${word}" is no <setting>=<value>.`);
      return [name, readValue(name, text.trim())];
    }),
  );
}

function readValue(name: string, text: string): unknown {
  const kind = queueFields.get(name);
  if (kind === undefined) {
    const meant = suggest(name, [...queueFields.keys()]);
    const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    throw new UsageError(`A queue has no setting "${name}".${hint}`);
  }
  if (text === "none") return null;
  if (kind === "text") return text;
  if (kind === "flag" && (text === "yes" || text === "no")) return text === "yes";
  if (kind === "number" && /^\d+$/.test(text)) return Number(text);
  const [, limit, window = ""] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  const window_ms = durationOf(window);
  if (kind === "rate" && limit !== undefined && window_ms !== undefined)
    return { limit: Number(limit), window_ms };
  const wanted = { flag: "yes or no", number: "a number", rate: "a rate such as 100/60s" }[kind];
  throw new UsageError(`${name} is ${wanted}, not "${text}".`);
}

function print(queue: QueueRecord, values: Values, terminal: Terminal): void {
  const view = queueView(queue);
  if (values.json === true) terminal.print(JSON.stringify(view));
  else terminal.print(inWords(view));
}

const inWords = (view: ReturnType<typeof queueView>): string =>
  fields([
    ["queue", view.name],
    ["id", String(view.id)],
    ["tenant", view.tenant_id ?? "(all)"],
    ["paused", view.paused ? "yes" : "no"],
    ...[...queueFields.keys()].map(
      (name) => [name, words(view[name as keyof typeof view])] as const,
    ),
    ["external_id", view.external_id],
  ]);

/** As `set` takes it. */
function words(value: unknown): string {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "object") return String(value);
  const { limit, window_ms } = value as { limit: number; window_ms: number };
  return `${limit}/${window_ms % 1_000 === 0 ? `${window_ms / 1_000}s` : `${window_ms}ms`}`;
}
