import { MillraceError } from "../../domain/errors.ts";
import type { RedisConnection } from "./connection.ts";
import type { QueueKeys } from "./keys.ts";
import { loadScript, runScript, type Script } from "./scripts.ts";

const names = [
  "enqueue",
  "take",
  "ack",
  "release",
  "bury",
  "requeue",
  "dead",
  "beat",
  "adopt",
  "retire",
  "snapshot",
  "purge",
] as const;

export type QueueScript = (typeof names)[number];

const folder = new URL("./scripts/", import.meta.url);
const scripts = new Map<QueueScript, Script>();

function scriptOf(name: QueueScript): Script {
  const script = scripts.get(name) ?? loadScript(folder, name, ["shared"]);
  scripts.set(name, script);
  return script;
}

/** Runs a script of the queue; what it answers is said at the top of its file. */
export type RunScript = <R>(name: QueueScript, args: readonly string[]) => Promise<R>;

export function queueScripts(connection: RedisConnection, keys: QueueKeys): RunScript {
  return async <R>(name: QueueScript, args: readonly string[]) => {
    try {
      return (await runScript(connection, scriptOf(name), keys.all, args)) as R;
    } catch (error) {
      throw isReply(error) ? refused(error) : error;
    }
  };
}

const isReply = (error: unknown): error is Error =>
  error instanceof Error && !(error instanceof MillraceError) && /^[A-Z]+ /.test(error.message);

const refused = (cause: Error): MillraceError =>
  new MillraceError("REDIS_REFUSED", `Redis refused a command: ${cause.message}`, { cause });
