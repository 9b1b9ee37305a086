import type { Millrace } from "../client/millrace.ts";
import type { EnqueueOptions } from "../client/new-job.ts";
import { type Config, loadConfig } from "../config.ts";
import { payloadError, writePayload } from "../domain/payload-rules.ts";
import { suggest } from "../domain/suggest.ts";
import { defineJob } from "../worker/job-definition.ts";
import {
  type Command,
  durationOption,
  textOption,
  UsageError,
  type Values,
  wholeOption,
} from "./command.ts";
import { connect, databaseChoice, databaseHelp, databaseOptions } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

const help = `millrace enqueue – make a job

Usage: millrace enqueue <type> [payload] [options]

The payload is JSON, or - to read it from standard input; {} when left out. Prints the new job's
id, after COMMIT. The rules for payloads hold here as everywhere.

Options:
  --queue <name>     into this queue (default: default)
  --tenant <tenant>  for this tenant (default: default)
  --key <key>        idempotency key: the same call again gives the same job
  --priority <name>  high, normal or low (default: normal)
  --delay <time>     not before this time: 500ms, 30s, 5m, 2h, 1d
  --expires <time>   not after this time
  --reference <ref>  your own name for it
  --correlation <c>  correlation id
  --ordering-key <k> jobs of one key run one at a time, in order
  --attempts <n>     how often it is tried
  --wait <time>      wait so long for its end, and print the result instead of the id
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace enqueue echo '{"hello":"world"}'
  npx millrace enqueue mail.send '{"to":"u1"}' --queue mail --priority high --delay 5m
  npx millrace enqueue report.make - --key report-2026-07 < report.json
  npx millrace enqueue echo '{"hello":"world"}' --wait 30s    (beside: npx millrace worker --demo)
`;

export const enqueue: Command = {
  name: "enqueue",
  summary: "make a job",
  help,
  takesWords: true,
  options: {
    queue: { type: "string" },
    tenant: { type: "string" },
    key: { type: "string" },
    priority: { type: "string" },
    delay: { type: "string" },
    expires: { type: "string" },
    reference: { type: "string" },
    correlation: { type: "string" },
    "ordering-key": { type: "string" },
    attempts: { type: "string" },
    wait: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number> {
    const [type, payloadText = "{}", extra] = words;
    if (type === undefined || type === "") throw new UsageError("Which type of job?");
    if (extra !== undefined)
      throw new UsageError(`"${extra}" is one word too many: put the payload in quotes.`);
    const waitMs = durationOption(values, "wait");
    const options = readOptions(values);
    const queue = textOption(values, "queue") ?? "default";
    const payload = parsePayload(payloadText === "-" ? await readInput() : payloadText);
    const request = { type, queue, payload, options };
    refuseEarly(request, loadConfig(databaseChoice(values)));
    const millrace = await connect(values, terminal);
    try {
      const made = await make(millrace, request);
      if (made.existing) terminal.printError(`That request was made before; job ${made.id}:`);
      if (waitMs !== undefined) {
        const result = await millrace.result(made.id, { timeoutMs: waitMs });
        terminal.print(JSON.stringify(values.json === true ? { ...made, result } : result));
      } else terminal.print(values.json === true ? JSON.stringify(made) : made.id);
    } finally {
      await millrace.stop();
    }
    return 0;
  },
};

function readOptions(values: Values): EnqueueOptions {
  const given = {
    tenant: textOption(values, "tenant"),
    key: textOption(values, "key"),
    priority: textOption(values, "priority"),
    delayMs: durationOption(values, "delay"),
    expiresInMs: durationOption(values, "expires"),
    reference: textOption(values, "reference"),
    correlationId: textOption(values, "correlation"),
    orderingKey: textOption(values, "ordering-key"),
    maxAttempts: wholeOption(values, "attempts", { min: 1, max: 1_000 }),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function parsePayload(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? plain(error.message) : "";
    throw new UsageError(`The payload is not JSON (${why}).`);
  }
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

interface Request {
  readonly type: string;
  readonly queue: string;
  readonly payload: unknown;
  readonly options: EnqueueOptions;
}

/** What is refused whatever the database holds leaves no queue and no embedded database behind. */
function refuseEarly({ type, queue, payload, options }: Request, config: Config): void {
  const { priority } = options;
  const labels = Object.keys(config.priorities);
  if (priority !== undefined && !labels.includes(priority)) {
    const meant = suggest(priority, labels);
    const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
    throw new UsageError(
      `There is no priority "${priority}": there are ${labels.join(", ")}.${hint}`,
    );
  }
  defineJob({ type, queue });
  const { categories, payloadLimits: limits } = config;
  const category = categories.categoryOf(type)?.name;
  const { check } = writePayload(payload, {
    ...{ category, categories, limits, additionalRequired: undefined },
  });
  if (!check.ok) throw payloadError(check.errors);
}

/** A governed job says in its envelope whose it is; others are of the tenant default. */
async function make(millrace: Millrace, { type, queue, payload, options }: Request) {
  const category = millrace.config.categories.categoryOf(type)?.name;
  const definition = defineJob({ type, queue, ...(category === undefined ? {} : { category }) });
  const tenant = options.tenant ?? (category === undefined ? undefined : tenantIn(payload));
  const named = { ...options, ...(tenant === undefined ? {} : { tenant }) };
  const [made] = await millrace.enqueueInto([
    {
      definition,
      payload,
      options: named,
      queue: await millrace.queueCache.resolve(tenant ?? "default", queue),
    },
  ]);
  if (made === undefined) throw new Error("the enqueue was not answered");
  return made;
}

function tenantIn(payload: unknown): string | undefined {
  if (typeof payload !== "object" || payload === null || !("tenant_id" in payload))
    return undefined;
  return String(payload.tenant_id);
}
