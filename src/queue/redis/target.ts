// Which Redis: one server, a Cluster, or whichever server a group of Sentinels says is the master.

import { MillraceError } from "../../domain/errors.ts";

export interface RedisTarget {
  /** `redis://` or `rediss://`. A list, or several separated by commas, is a Cluster. */
  readonly url: string | readonly string[];
  /** With the name of a master, the addresses are those of its Sentinels. */
  readonly sentinelMaster?: string;
}

export type RedisTopology = "single" | "cluster" | "sentinel";

export function urlsOf({ url }: RedisTarget): readonly string[] {
  const urls = typeof url === "string" ? url.split(",").map((one) => one.trim()) : url;
  for (const one of urls) checkUrl(one);
  if (urls.length === 0) throw new MillraceError("OPTION_INVALID", "A Redis URL is needed.");
  return urls;
}

export function topologyOf(target: RedisTarget): RedisTopology {
  if (target.sentinelMaster !== undefined) return "sentinel";
  const isList = typeof target.url !== "string" || target.url.includes(",");
  return isList ? "cluster" : "single";
}

/** Never says the address itself: it may hold a password. */
function checkUrl(url: string): void {
  const isRedis = /^rediss?:\/\//.test(url) && URL.canParse(url);
  if (isRedis) return;
  throw new MillraceError("OPTION_INVALID", "A Redis URL begins with redis:// or rediss://.");
}
