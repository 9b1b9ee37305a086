// What a doctor asks a Redis: only what every version answers, and nothing about keys.

import { RedisConnection } from "./connection.ts";

export interface RedisFacts {
  readonly version: string;
  readonly appendOnly: boolean;
  readonly evictionPolicy: string | null;
  /** 0: no limit. */
  readonly maxMemoryBytes: number;
  readonly usedMemoryBytes: number;
  readonly clockAheadMs: number;
}

const key = "millrace";

export async function readRedisFacts(url: string, timeoutMs: number): Promise<RedisFacts> {
  const connection = await RedisConnection.open({
    ...{ url, name: "doctor" },
    connectTimeoutMs: timeoutMs,
    answerTimeoutMs: timeoutMs,
  });
  try {
    await connection.beAdmitted(key);
    const info = parseInfo(String(await connection.send(key, ["INFO"])));
    const sentAt = Date.now();
    const [seconds, micros] = (await connection.send(key, ["TIME"])) as [string, string];
    const middle = sentAt + (Date.now() - sentAt) / 2;
    return {
      version: info.get("redis_version") ?? "?",
      appendOnly: info.get("aof_enabled") === "1",
      evictionPolicy: info.get("maxmemory_policy") ?? null,
      maxMemoryBytes: Number(info.get("maxmemory") ?? 0),
      usedMemoryBytes: Number(info.get("used_memory") ?? 0),
      clockAheadMs: middle - (Number(seconds) * 1_000 + Number(micros) / 1_000),
    };
  } finally {
    connection.close();
  }
}

const parseInfo = (text: string): Map<string, string> =>
  new Map(
    text
      .split(/\r?\n/)
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
