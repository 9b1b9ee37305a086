// Three masters on loopback, joined by the commands that redis-cli would send.

import { type RedisServer, type RedisServerOptions, startRedis } from "./redis-server.ts";
import { until } from "./until.ts";

const slots = 16_384;

export interface RedisCluster {
  readonly servers: readonly RedisServer[];
  readonly urls: readonly string[];
  drop(): Promise<void>;
}

export async function startRedisCluster(options: RedisServerOptions = {}): Promise<RedisCluster> {
  const settings = {
    ...options.settings,
    "cluster-enabled": "yes",
    "cluster-node-timeout": "15000",
    "cluster-require-full-coverage": "no",
  };
  const servers = await Promise.all([0, 1, 2].map(() => startRedis({ ...options, settings })));
  const [first] = servers;
  for (const [i, server] of servers.entries()) {
    const from = Math.floor((slots * i) / servers.length);
    const to = Math.floor((slots * (i + 1)) / servers.length) - 1;
    const range = Array.from({ length: to - from + 1 }, (_, n) => String(from + n));
    await server.command("CLUSTER", "ADDSLOTS", ...range);
    await server.command("CLUSTER", "SET-CONFIG-EPOCH", String(i + 1));
    if (server !== first) await first?.command("CLUSTER", "MEET", "127.0.0.1", String(server.port));
  }
  await until("every node knows every slot", async () => {
    const infos = await Promise.all(servers.map((server) => server.command("CLUSTER", "INFO")));
    return infos.every(
      (info) =>
        /cluster_state:ok/.test(String(info)) && /cluster_slots_ok:16384/.test(String(info)),
    );
  });
  return {
    servers,
    urls: servers.map(({ url }) => url),
    drop: async () => {
      await Promise.all(servers.map((server) => server.drop()));
    },
  };
}
