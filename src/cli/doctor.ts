import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Config, loadConfig } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import { type RedisFacts, readRedisFacts } from "../queue/redis/checkup.ts";
import { systemClock } from "../runtime/clock.ts";
import { Events } from "../runtime/events.ts";
import {
  examine,
  readPathFacts,
  readSchemaFacts,
  readServerFacts,
} from "../store/postgres/checkup.ts";
import { startEmbedded } from "../store/postgres/embedded.ts";
import { PostgresStore } from "../store/postgres/postgres-store.ts";
import type { Command, Values } from "./command.ts";
import { databaseChoice, databaseHelp, databaseOptions, needDatabase } from "./connect.ts";
import { withoutPassword } from "./database-url.ts";
import {
  type Finding,
  fail,
  type Health,
  lifeFindings,
  pathFindings,
  redisFindings,
  schemaFindings,
  serverFindings,
} from "./doctor-findings.ts";
import type { Terminal } from "./terminal.ts";
import { plain, plainLines } from "./text.ts";

const help = `millrace doctor – is everything well, and what to do about what is not

Usage: millrace doctor [options]

Looks at PostgreSQL (version, durability settings, connections, old snapshots, clock), at what lies
between (poolers, LISTEN), at the schema and its hot table, at Redis if there is one, and at the life of
the queue (leader, workers, oldest ready job, dead letters). It only reads.

Exit codes: 0 all is well, 1 something may become trouble, 2 something is trouble.

Options:
${databaseHelp}
  --json             one JSON line per finding
  -h, --help         this text

Examples:
  npx millrace doctor
  DATABASE_URL=postgres://localhost/app REDIS_URL=redis://localhost npx millrace doctor
  npx millrace doctor --json | jq -r 'select(.health != "ok") | .mend'
`;

export const doctor: Command = {
  name: "doctor",
  summary: "is everything well, and how to mend what is not",
  help,
  options: { ...databaseOptions, json: { type: "boolean" } },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const config = loadConfig(databaseChoice(values));
    const json = values.json === true;
    let worst: Health = "ok";
    const tell = (findings: readonly Finding[]) => {
      for (const finding of findings) {
        if (rank[finding.health] > rank[worst]) worst = finding.health;
        terminal.print(json ? JSON.stringify(finding) : line(finding, terminal));
      }
    };
    await examinePostgres(values, config, tell);
    await examineRedis(config, tell);
    if (!json) terminal.print(verdicts[worst]);
    return rank[worst];
  },
};

type Tell = (findings: readonly Finding[]) => void;

const rank = { ok: 0, warn: 1, fail: 2 } as const;
const verdicts = {
  ok: "All is well.",
  warn: "It works; some of it may become trouble.",
  fail: "Mend what failed first.",
} as const;
const colours = { ok: "green", warn: "yellow", fail: "red" } as const;

function line({ health, check, found, mend }: Finding, terminal: Terminal): string {
  const mark = terminal.style(colours[health], health.padEnd(4));
  const told = `${mark}  ${check.padEnd(22)}${plain(found)}`;
  return mend === null ? told : `${told}\n      → ${plainLines(mend)}`;
}

async function examinePostgres(values: Values, config: Config, tell: Tell): Promise<void> {
  const { databaseUrl, dataDir } = config;
  needDatabase(values);
  const isThere = existsSync(join(dataDir, "cluster"));
  const embedded =
    databaseUrl === undefined && isThere ? await startEmbedded({ dataDir }) : undefined;
  const url = databaseUrl ?? embedded?.url ?? "";
  try {
    await examineServer(url, config, tell);
  } catch (error) {
    const why = error instanceof Error ? error.message || String(error) : String(error);
    const mend = "Check that it runs, and host, port, user, password and database of DATABASE_URL.";
    tell([fail("PostgreSQL", `${withoutPassword(url)}: ${why}`, mend)]);
  } finally {
    await embedded?.stop();
  }
}

async function examineServer(url: string, config: Config, tell: Tell): Promise<void> {
  const { server, schema } = await examine(url, async (client) => ({
    server: await readServerFacts(client),
    schema: await readSchemaFacts(client, config.schema),
  }));
  tell(serverFindings(server));
  tell(pathFindings(await readPathFacts(url)));
  tell(schemaFindings(schema));
  if (schema.isThere && schema.pending.length === 0)
    tell(await lifeOf(url, server.version, config));
}

async function lifeOf(url: string, serverVersion: string, config: Config): Promise<Finding[]> {
  const store = new PostgresStore({
    ...{ url, serverVersion, schema: config.schema, poolSize: 1 },
    ...{ queryTimeoutMs: config.queryTimeoutMs, leaderTtlMs: config.leaderTtlMs },
    ...{ enqueuePatienceMs: config.enqueueTimeoutMs, keyLockTimeoutMs: 50 },
    ...{ allowed: { payloadsApart: false, tallies: false } },
    ...{ events: new Events(), clock: systemClock, random: Math.random },
  });
  try {
    const triggers = await store.triggers.list({}, 1_000);
    const webhooks = await store.webhooks.list();
    return lifeFindings({
      needLeader: triggers.filter(({ enabled }) => enabled).length + webhooks.length,
      leadership: await store.leadership(),
      workers: await store.workers(),
      queues: await store.service.queues.figures(),
      deadLetters: await store.service
        .readsOf(null)
        .deadLetters.count({ status: "pending_review" }),
    });
  } finally {
    await store.close();
  }
}

async function examineRedis(
  { redis, redisHealthCheckTimeoutMs }: Config,
  tell: Tell,
): Promise<void> {
  if (!redis.use) return tell([{ health: "ok", check: "Redis", found: redis.reason, mend: null }]);
  const urls =
    redis.high === redis.low
      ? [["Redis", redis.high]]
      : [
          ["Redis high", redis.high],
          ["Redis low", redis.low],
        ];
  for (const [which = "", url = ""] of urls) {
    try {
      const facts: RedisFacts = await readRedisFacts(url, redisHealthCheckTimeoutMs);
      tell(redisFindings(facts, which));
    } catch (error) {
      const isMissing = error instanceof MillraceError && error.code === "REDIS_CLIENT_MISSING";
      const why = error instanceof Error ? error.message : String(error);
      const mend = isMissing
        ? "npm install @redis/client"
        : "Workers claim directly meanwhile. Check that it runs, and host, port and password of REDIS_URL.";
      tell([fail(which, why, mend)]);
    }
  }
}
