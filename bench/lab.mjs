// The servers of a run, started when somebody first needs them, and stopped together.
import { startPostgres } from "./servers/postgres.mjs";
import { startRedis } from "./servers/redis.mjs";

const starters = {
  postgres: startPostgres,
  redis: () => startRedis({ appendOnly: false }),
  "redis-aof": () => startRedis({ appendOnly: true }),
};

export class Lab {
  stands = new Set();
  #servers = new Map();

  server(name) {
    if (!this.#servers.has(name)) this.#servers.set(name, starters[name]());
    return this.#servers.get(name);
  }

  async versions() {
    const versions = {};
    for (const [name, server] of this.#servers) versions[name] = (await server).version;
    return versions;
  }

  async stop() {
    await Promise.allSettled([...this.stands].map((stand) => stand.close()));
    await Promise.allSettled(
      [...this.#servers.values()].map(async (server) => (await server).stop()),
    );
    this.#servers.clear();
  }
}
