// From facts to findings: what is well, what may become trouble, what is trouble, and how to mend it.

import type { RedisFacts } from "../queue/redis/checkup.ts";
import type { PathFacts, SchemaFacts, ServerFacts } from "../store/postgres/checkup.ts";
import type { QueueFigures } from "../store/queue-admin.ts";
import type { Leadership, WorkerPresence } from "../store/store.ts";
import { age, count } from "./text.ts";

export type Health = "ok" | "warn" | "fail";

export interface Finding {
  readonly health: Health;
  readonly check: string;
  readonly found: string;
  readonly mend: string | null;
}

const well = (check: string, found: string): Finding => ({
  health: "ok",
  check,
  found,
  mend: null,
});
const warn = (check: string, found: string, mend: string): Finding => ({
  ...{ health: "warn", check, found, mend },
});
export const fail = (check: string, found: string, mend: string): Finding => ({
  ...{ health: "fail", check, found, mend },
});

/** A setting that must be on; `cost` says what its absence leads to. */
function mustBeOn(server: ServerFacts, name: "fsync" | "full_page_writes", cost: string): Finding {
  const value = server.settings[name];
  if (value === "on") return well(name, "on");
  return fail(name, value, `${cost} alter system set ${name} = on; select pg_reload_conf();`);
}

export function serverFindings(server: ServerFacts): Finding[] {
  const { settings, version, versionNumber, connections } = server;
  const most = Number(settings.max_connections);
  const free = most - connections;
  return [
    versionNumber < 140_000
      ? fail("PostgreSQL", version, "Use PostgreSQL 14 or newer.")
      : well("PostgreSQL", version),
    server.inRecovery
      ? fail("primary", "this server is a standby", "Point DATABASE_URL at the primary.")
      : well("primary", "accepts writes"),
    mustBeOn(server, "fsync", "A power cut can destroy the database."),
    mustBeOn(server, "full_page_writes", "A power cut can leave torn pages."),
    synchronousCommit(settings.synchronous_commit),
    settings.autovacuum === "on"
      ? well("autovacuum", "on")
      : fail(
          "autovacuum",
          settings.autovacuum,
          "Tables grow and statistics go stale: alter system set autovacuum = on; select pg_reload_conf();",
        ),
    free < 10
      ? warn(
          "connections",
          `${connections} of ${most} in use`,
          "A worker needs up to eight: raise max_connections, or end what idles.",
        )
      : well("connections", `${connections} of ${most} in use`),
    clockFinding("clock", server.clockAheadMs, server.roundTripMs),
    snapshotFinding(server),
    server.preparedTransactions > 0
      ? warn(
          "prepared transactions",
          count(server.preparedTransactions, "transaction"),
          "They hold locks and dead rows until somebody ends them: see pg_prepared_xacts, rollback prepared …",
        )
      : well("prepared transactions", "none"),
    server.idleSlots > 0
      ? warn(
          "replication slots",
          `${count(server.idleSlots, "slot")} nobody reads from`,
          "WAL piles up for them: see pg_replication_slots, select pg_drop_replication_slot(…);",
        )
      : well("replication slots", "none idle"),
  ];
}

function synchronousCommit(value: string): Finding {
  const check = "synchronous_commit";
  if (value !== "off") return well(check, value);
  return fail(
    check,
    value,
    "An acknowledged job can be lost in a crash, and a token granted twice: alter system set synchronous_commit = on; select pg_reload_conf();",
  );
}

function clockFinding(check: string, aheadMs: number, roundTripMs = 0): Finding {
  const offMs = Math.max(0, Math.abs(aheadMs) - roundTripMs / 2);
  const found = `${Math.round(Math.abs(aheadMs))} ms ${aheadMs < 0 ? "behind" : "ahead of"} the server's`;
  if (offMs <= 1_000) return well(check, found);
  return warn(
    check,
    found,
    "Times are the database's, but logs and ids of this machine will not fit to them: switch NTP on.",
  );
}

function snapshotFinding({ oldestSnapshotSeconds, oldestSnapshotHolder }: ServerFacts): Finding {
  const check = "old snapshots";
  const seconds = oldestSnapshotSeconds ?? 0;
  if (seconds < 300) return well(check, seconds === 0 ? "none" : `the oldest ${age(seconds)}`);
  return warn(
    check,
    `${age(seconds)}, held by ${oldestSnapshotHolder}`,
    "While it lasts no dead row can be removed, and claims get slower: end that transaction (pg_terminate_backend).",
  );
}

export function pathFindings({ poolsTransactions, hearsNotifications }: PathFacts): Finding[] {
  return [
    poolsTransactions
      ? fail(
          "pooler",
          "transactions are pooled between here and PostgreSQL",
          "Workers and managers need sessions of their own: connect directly, or use session pooling.",
        )
      : well("pooler", "none that pools transactions"),
    hearsNotifications
      ? well("LISTEN", "notifications arrive")
      : fail(
          "LISTEN",
          "notifications do not arrive",
          "Workers would learn of jobs only by polling: connect directly, or use session pooling.",
        ),
  ];
}

const later = "when no earlier version runs any more: npx millrace migrate --finish";

export function schemaFindings({ isThere, pending, waiting, ahead, hot }: SchemaFacts): Finding[] {
  if (!isThere)
    return [
      fail("schema", "there is none", "npx millrace migrate makes it (--dry-run shows the SQL)."),
    ];
  const migrations =
    pending.length > 0
      ? fail("schema", `lacks ${pending.join(", ")}`, "Run: npx millrace migrate")
      : ahead > 0
        ? warn(
            "schema",
            `${count(ahead, "migration")} newer than this package`,
            "Update the npm package millrace on this machine.",
          )
        : well("schema", waiting ? `up to date; ${later}` : "up to date");
  return hot === null ? [migrations] : [migrations, bloatFinding(hot)];
}

const megabyte = 1_048_576;

function bloatFinding({ live, dead, bytes }: NonNullable<SchemaFacts["hot"]>): Finding {
  const check = "bloat";
  const found = `${live.toLocaleString("en")} live and ${dead.toLocaleString("en")} dead rows in ${Math.ceil(bytes / megabyte)} MB`;
  if (dead > 50_000 && dead > 5 * live)
    return warn(
      check,
      found,
      "Dead rows are not removed: see old snapshots and autovacuum above, then: vacuum millrace.job;",
    );
  if (bytes > 512 * megabyte && bytes > 20_000 * (live + 1_000))
    return warn(
      check,
      found,
      "The hot table has grown once and is nearly empty now: vacuum full millrace.job; in a quiet minute.",
    );
  return well(check, found);
}

export function redisFindings(facts: RedisFacts, which: string): Finding[] {
  const { version, appendOnly, evictionPolicy, maxMemoryBytes, usedMemoryBytes } = facts;
  const [major = 0] = version.split(".").map(Number);
  const full = maxMemoryBytes > 0 && usedMemoryBytes > 0.9 * maxMemoryBytes;
  const used = `${Math.ceil(usedMemoryBytes / megabyte)} MB of ${maxMemoryBytes === 0 ? "no limit" : `${Math.ceil(maxMemoryBytes / megabyte)} MB`}`;
  return [
    major < 5 ? fail(which, version, "Use Redis 5 or newer.") : well(which, version),
    evictionPolicy === null || evictionPolicy === "noeviction"
      ? well(`${which} eviction`, evictionPolicy ?? "unknown")
      : warn(
          `${which} eviction`,
          evictionPolicy,
          "Hints may vanish, and jobs of millrace/queue with them: config set maxmemory-policy noeviction",
        ),
    // Redis holds hints, which may be lost. Who uses millrace/queue alone is told here too.
    well(
      `${which} AOF`,
      appendOnly
        ? "on"
        : "off: jobs in PostgreSQL do not need it, those of millrace/queue alone do",
    ),
    full
      ? warn(`${which} memory`, used, "Give it more memory: a full Redis takes no hints.")
      : well(`${which} memory`, used),
    clockFinding(`${which} clock`, facts.clockAheadMs),
  ];
}

export interface LifeFacts {
  readonly leadership: Leadership;
  readonly workers: readonly WorkerPresence[];
  readonly queues: readonly QueueFigures[];
  /** Those that nobody has dealt with. */
  readonly deadLetters: number;
  /** Triggers that are enabled, and webhooks. */
  readonly needLeader: number;
}

/** Who has never had a manager, and nothing that needs one, may well do without. */
function leaderFinding({ inOffice, term }: Leadership, needLeader: number): Finding {
  const check = "leader";
  if (inOffice) return well(check, `in office, term ${term}`);
  if (term === 0 && needLeader === 0)
    return well(check, "none yet: workers stand in, but only a manager clears old history away");
  return warn(
    check,
    "none is in office",
    "Triggers, webhooks and clearing away need one. Start: npx millrace manager (or serve --manager, or dev).",
  );
}

export function lifeFindings(facts: LifeFacts): Finding[] {
  const { leadership, workers, queues, deadLetters, needLeader } = facts;
  const live = workers.filter(({ state }) => state === "live").length;
  const waiting = queues.filter(({ paused, isActive }) => !paused && isActive);
  const oldest = waiting.reduce<QueueFigures | null>(
    (a, b) => ((b.oldestReadySeconds ?? -1) > (a?.oldestReadySeconds ?? -1) ? b : a),
    null,
  );
  const seconds = oldest?.oldestReadySeconds ?? null;
  return [
    leaderFinding(leadership, needLeader),
    live > 0
      ? well("workers", `${count(live, "worker")} alive`)
      : warn("workers", "none is alive", "Start one: npx millrace worker ./jobs.ts"),
    seconds === null || oldest === null
      ? well("oldest ready", "nothing waits")
      : seconds > 300
        ? warn(
            "oldest ready",
            `${age(seconds)} in queue "${oldest.name}"`,
            `See why: npx millrace jobs --queue ${oldest.name} --state ready, then npx millrace explain <id>.`,
          )
        : well("oldest ready", `${age(seconds)} in queue "${oldest.name}"`),
    deadLetters > 0
      ? warn("dead letters", deadLetters.toLocaleString("en"), "Look at them: npx millrace dlq")
      : well("dead letters", "none"),
  ];
}
