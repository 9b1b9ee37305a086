// Which Redis: one server, a Cluster, or whichever server a group of Sentinels says is the master.

import { redisUrls } from "../../domain/redis-url.ts";

export interface RedisTarget {
  /** `redis://` or `rediss://`. A list, or several separated by commas, is a Cluster. */
  readonly url: string | readonly string[];
  /** With the name of a master, the addresses are those of its Sentinels. */
  readonly sentinelMaster?: string;
}

export type RedisTopology = "single" | "cluster" | "sentinel";

export function urlsOf({ url }: RedisTarget): readonly string[] {
  return redisUrls(url);
}

export function topologyOf(target: RedisTarget): RedisTopology {
  if (target.sentinelMaster !== undefined) return "sentinel";
  const isList = typeof target.url !== "string" || target.url.includes(",");
  return isList ? "cluster" : "single";
}
