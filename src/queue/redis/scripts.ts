// Lua scripts, sent by their hash; a server that does not know one gets its text once.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { RedisConnection } from "./connection.ts";

export interface Script {
  readonly text: string;
  readonly hash: string;
}

/** Reads `<name>.lua` from the folder, behind the parts that it shares with others. */
export function loadScript(folder: URL, name: string, shared: readonly string[] = []): Script {
  const parts = [...shared, name].map((part) =>
    readFileSync(new URL(`${part}.lua`, folder), "utf8"),
  );
  const text = parts.join("\n");
  return { text, hash: createHash("sha1").update(text).digest("hex") };
}

export async function runScript(
  connection: RedisConnection,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const [key = ""] = keys;
  const rest = [String(keys.length), ...keys, ...args];
  try {
    return await connection.send(key, ["EVALSHA", script.hash, ...rest]);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return connection.send(key, ["EVAL", script.text, ...rest]);
  }
}
