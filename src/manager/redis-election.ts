// Redis chooses the candidate, PostgreSQL gives the term. A Redis that does not answer is left out: it
// only keeps those who wait away from PostgreSQL, and decides nothing that PostgreSQL does not confirm.

import { isUnavailable, RedisConnection } from "../queue/redis/connection.ts";
import { loadScript, runScript } from "../queue/redis/scripts.ts";
import type { RedisTarget } from "../queue/redis/target.ts";
import type { Events } from "../runtime/events.ts";
import type { LeaderElection } from "./leader-election.ts";
import { createPostgresElection, type ElectionOptions } from "./postgres-election.ts";

export interface RedisElectionOptions extends ElectionOptions, RedisTarget {
  readonly connectTimeoutMs: number;
  readonly events?: Events;
}

type Answer = "kept" | "foreign" | "unknown";

const answerTimeoutMs = 250;
const scripts = new URL("./scripts/", import.meta.url);
const keepCandidacy = loadScript(scripts, "keep-candidacy");
const leaveCandidacy = loadScript(scripts, "leave-candidacy");

export class RedisElection implements LeaderElection {
  readonly #options: RedisElectionOptions;
  readonly #office: LeaderElection;
  #key: string | undefined;
  #connection: RedisConnection | undefined;
  #closed = false;

  constructor(options: RedisElectionOptions) {
    this.#options = options;
    this.#office = createPostgresElection(options);
  }

  async campaign(): Promise<number | null> {
    if ((await this.#stand()) === "foreign") return null;
    const term = await this.#office.campaign();
    // Chosen too early: whoever is in office must find the key free.
    if (term === null) await this.#leave();
    return term;
  }

  async renew(term: number): Promise<boolean> {
    if ((await this.#keep()) !== "foreign") return this.#office.renew(term);
    await this.#office.resign(term);
    return false;
  }

  async resign(term: number): Promise<void> {
    await this.#office.resign(term);
    await this.#leave();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#connection?.close();
    await this.#office.close();
  }

  #stand(): Promise<Answer> {
    const { holder, ttlMs } = this.#options;
    return this.#ask(async (connection, key) => {
      const taken = await connection.send(key, ["SET", key, holder, "NX", "PX", String(ttlMs)]);
      if (taken === "OK") return "kept";
      // The answer to an earlier attempt may have been lost.
      return (await connection.send(key, ["GET", key])) === holder ? "kept" : "foreign";
    });
  }

  #keep(): Promise<Answer> {
    const { holder, ttlMs } = this.#options;
    return this.#ask((connection, key) =>
      runScript(connection, keepCandidacy, [key], [holder, String(ttlMs)]),
    );
  }

  #leave(): Promise<Answer> {
    const { holder } = this.#options;
    return this.#ask((connection, key) => runScript(connection, leaveCandidacy, [key], [holder]));
  }

  async #ask(
    question: (connection: RedisConnection, key: string) => Promise<unknown>,
  ): Promise<Answer> {
    try {
      this.#key ??= `millrace:{${(await this.#options.store.identity()).namespace}}:candidate`;
      const connection = await this.#connect();
      return (await question(connection, this.#key)) === "foreign" ? "foreign" : "kept";
    } catch (error) {
      if (isUnavailable(error)) return "unknown";
      throw error;
    }
  }

  async #connect(): Promise<RedisConnection> {
    if (this.#connection !== undefined) return this.#connection;
    const opened = await RedisConnection.open({
      ...this.#options,
      name: "redis election",
      answerTimeoutMs,
    });
    if (this.#closed) opened.close();
    this.#connection = opened;
    return opened;
  }
}
