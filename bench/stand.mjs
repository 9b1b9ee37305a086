// A test stand: one database (or a flushed Redis) with the processes of one system on it.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import { nowMs, sleep } from "./clock.mjs";
import { adapterOf } from "./systems/index.mjs";

const script = fileURLToPath(new URL("./actor.mjs", import.meta.url));

async function flush(url) {
  const redis = new Redis(url);
  await redis.flushall();
  await redis.quit();
}

class Actor {
  #child;
  #waiting = new Map();
  #calls = 0;
  #closing = false;
  constructor(onEvent) {
    this.#child = fork(script, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    this.#child.on("message", (message) => {
      if (message.event) return onEvent(message);
      const { resolve, reject } = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error) reject(new Error(message.error));
      else resolve(message.result);
    });
    this.#child.on("exit", (code, signal) => {
      if (this.#closing) return;
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`a bench process ended by itself (${signal ?? code})`));
      }
    });
  }
  call(verb, argument) {
    return new Promise((resolve, reject) => {
      const id = ++this.#calls;
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, verb, argument });
    });
  }
  tell(verb, argument) {
    if (this.#child.connected) this.#child.send({ verb, argument });
  }
  async close() {
    await Promise.race([this.call("close"), sleep(10_000)]);
    await this.end();
  }
  async end() {
    this.#closing = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await gone;
  }
}

export class Stand {
  actors = [];
  counts = [];
  watchers = new Set();
  onPickup = null;
  next = 0; // number of the next job

  static async open(lab, system, config, roles) {
    const stand = new Stand();
    try {
      await stand.#open(lab, system, config, roles);
      return stand;
    } catch (error) {
      await stand.close();
      throw error;
    }
  }

  async #open(lab, system, config, { workers = 1, local = false }) {
    this.system = system;
    this.config = config;
    this.adapter = await adapterOf(system);
    this.server = await lab.server(config.server ?? "postgres");
    if (config.broker) await this.#broker(await lab.server(config.broker));
    this.workers = [];
    const first = this.#actor();
    const others = Array.from({ length: local ? 0 : workers }, () => this.#worker());
    const loaded = Promise.all(this.actors.map((actor) => actor.call("load", { system })));
    loaded.catch(() => {}); // awaited below
    this.database = await this.#fresh();
    await loaded;
    const place = { url: this.database.url, config: this.config };
    await first.call("migrate", place);
    this.producer = first;
    await first.call(local ? "openLocal" : "openProducer", place);
    await Promise.all(others.map((worker) => this.#employ(worker)));
  }

  async addWorker() {
    const worker = this.#worker();
    await worker.call("load", { system: this.system });
    await this.#employ(worker);
  }

  #worker() {
    return this.#actor(this.counts.push(null) - 1);
  }

  async #employ(worker) {
    await worker.call("openConsumer", { url: this.database.url, config: this.config });
    this.workers.push(worker);
  }

  // Their counts stay, so that a later worker goes on from there.
  async removeWorkers() {
    const gone = this.workers.splice(0);
    await Promise.all(gone.map((worker) => worker.close()));
    this.actors = this.actors.filter((actor) => !gone.includes(actor));
  }

  #actor(index) {
    const actor = new Actor((message) => {
      if (message.event === "pickup") this.onPickup?.();
      else {
        this.counts[index] = message;
        for (const watch of this.watchers) watch();
      }
    });
    this.actors.push(actor);
    return actor;
  }

  async #fresh() {
    if (this.server.createDatabase) {
      const database = await this.server.createDatabase();
      this.client = new pg.Client({ connectionString: database.url });
      this.client.on("error", () => {});
      await this.client.connect();
      return database;
    }
    await flush(this.server.url);
    return { url: this.server.url, drop: async () => {} };
  }

  // A Redis beside the database.
  async #broker(redis) {
    await flush(redis.url);
    this.redis = redis;
    this.config = { ...this.config, redisUrl: redis.url };
  }

  get handled() {
    return this.counts.reduce((sum, count) => sum + (count?.handled ?? 0), 0);
  }

  mark() {
    return {
      handled: this.handled,
      at: Math.max(...this.counts.map((count) => count?.lastAt ?? 0)),
    };
  }

  // Resolves with the time at which the workers had handled `total` jobs since they were opened.
  handledBy(total, timeoutMs = 180_000) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => finish(), timeoutMs);
      const watch = () => this.handled >= total && finish(this.mark().at);
      const finish = (at) => {
        clearTimeout(timer);
        this.watchers.delete(watch);
        if (at === undefined)
          reject(
            new Error(`${this.system}: ${this.handled} of ${total} jobs after ${timeoutMs} ms`),
          );
        else resolve(at);
      };
      this.watchers.add(watch);
      watch();
    });
  }

  // Enqueues and returns the numbering for the next call.
  async produce({ count, bytes, depth, bulk = Boolean(this.config.batch) }) {
    const batch = bulk ? (this.config.batch ?? 1000) : undefined;
    const inFlight = bulk ? (this.config.bulkInFlight ?? 1) : (this.config.inFlight ?? 200);
    const argument = { count, first: this.next, bytes, batch, inFlight, depth };
    const { next, endedAt } = await this.producer.call("produce", argument);
    this.next = next;
    return endedAt;
  }

  // What the workers handled since now is reported to the producer, which keeps the backlog's depth by it.
  feedBack() {
    const before = this.handled;
    const watch = () => this.producer.tell("consumed", this.handled - before);
    this.watchers.add(watch);
    return () => this.watchers.delete(watch);
  }

  async settled(timeoutMs = 180_000) {
    if (!this.adapter.isSettled) return undefined;
    const until = nowMs() + timeoutMs;
    for (;;) {
      const askedAt = nowMs();
      if (await this.adapter.isSettled(this.client)) return askedAt;
      if (askedAt > until) throw new Error(`${this.system}: not settled after ${timeoutMs} ms`);
      await sleep(3);
    }
  }

  async calm({ analyze = true } = {}) {
    if (analyze) await this.client?.query("analyze");
    await this.server.checkpoint?.();
  }

  async cpu() {
    const each = await Promise.all(this.actors.map((actor) => actor.call("cpu")));
    return {
      node: each.reduce((sum, seconds) => sum + seconds, 0),
      server: this.server.cpuSeconds(),
      redis: this.redis?.cpuSeconds() ?? null,
    };
  }

  // The database goes with them, so nobody needs to say goodbye.
  async close() {
    await Promise.all(this.actors.map((actor) => actor.end()));
    await this.client?.end().catch(() => {});
    await this.database?.drop();
  }
}
