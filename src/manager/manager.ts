// A manager: a candidate for the office of leader, and the list of services that run while it holds it.

import { randomUUID } from "node:crypto";
import { MillraceError } from "../domain/errors.ts";
import { isOverWithin } from "../runtime/is-over-within.ts";
import type { Service } from "../runtime/service.ts";
import type { Notice } from "../store/store.ts";
import { Candidate, type LeaderElection, type LossReason } from "./leader-election.ts";
import type {
  LeaderContext,
  LeaderService,
  ServiceFactory,
  ServiceReport,
} from "./leader-service.ts";
import { createPostgresElection } from "./postgres-election.ts";
import { upkeepServices } from "./upkeep-services.ts";

/** What a leader does. Whatever is added here runs on one manager at a time. */
const services: readonly ServiceFactory[] = [...upkeepServices];

export type ManagerOptions = Omit<LeaderContext, "term">;

export class Manager implements Service {
  readonly name = "manager";
  /** Tells this manager from every other, also on the same host. */
  readonly id = randomUUID();
  readonly #options: ManagerOptions;
  #candidate: Candidate | null = null;
  #election: LeaderElection | null = null;
  #running: readonly LeaderService[] = [];
  /** What services of earlier terms may still be waiting for. Their writes are refused. */
  #ending: Promise<unknown> = Promise.resolve();
  #starting: Promise<void> | null = null;
  #stopped = false;

  constructor(options: ManagerOptions) {
    this.#options = options;
  }

  get isLeader(): boolean {
    return this.term !== null;
  }

  get term(): number | null {
    return this.#candidate?.term ?? null;
  }

  /** Of the services of the present term, or of the last one. */
  get reports(): readonly ServiceReport[] {
    return this.#running.map(({ report }) => report);
  }

  /** Refused with STOPPED once it was stopped: another one is made by manage(). */
  async start(): Promise<void> {
    this.#refuseStopped();
    this.#starting ??= this.#start().catch((error: unknown) => {
      this.#starting = null;
      throw error;
    });
    await this.#starting;
    this.#refuseStopped();
  }

  #refuseStopped(): void {
    if (!this.#stopped) return;
    throw new MillraceError("STOPPED", "This manager has been stopped; manage() makes another.");
  }

  async #start(): Promise<void> {
    const { config, clock, random, events } = this.#options;
    const election = await this.#createElection();
    if (this.#stopped) return election.close();
    this.#election = election;
    this.#candidate = new Candidate({
      election,
      ttlMs: config.leaderTtlMs,
      serve: (term, over) => this.#serve(term, over),
      ...{ clock, random, events },
    });
    await this.#candidate.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#starting?.catch(() => {});
    await this.#candidate?.stop();
    await this.#election?.close();
    await this.#ending;
  }

  async #serve(term: number, over: AbortSignal): Promise<void> {
    const { store } = this.#options;
    const running = services.map((create) => create({ ...this.#options, term }));
    this.#running = running;
    const hear = (notice: Notice) => {
      for (const service of running) service.hear?.(notice);
    };
    // Without notices the services poll; a server that is away must not keep them from starting.
    const listening = store.listen(hear).catch(() => null);
    for (const service of running) await service.start();
    await new Promise<void>((resolve) => {
      if (over.aborted) resolve();
      else over.addEventListener("abort", () => resolve(), { once: true });
    });
    const ended = Promise.all([
      ...running.map((service) => service.stop()),
      listening.then((listener) => listener?.close()),
    ]);
    this.#ending = Promise.allSettled([this.#ending, ended]);
    await this.#stepDown(running, ended, over.reason);
  }

  /**
   * Whoever resigns lets its rounds end. Whoever lost its term has nothing more to write, and may have
   * lost it because nobody answers: what still waits for an answer is given up, and never holds up the
   * next campaign for long.
   */
  async #stepDown(
    running: readonly LeaderService[],
    ended: Promise<unknown>,
    reason: LossReason,
  ): Promise<void> {
    const { clock, config } = this.#options;
    const patienceMs = config.leaderTtlMs / 2;
    if (reason === "resigned" && (await isOverWithin(ended, patienceMs, clock))) return;
    for (const service of running) void service.abandon?.();
    await isOverWithin(ended, patienceMs, clock);
  }

  async #createElection(): Promise<LeaderElection> {
    const { store, config, events } = this.#options;
    const { redis, leaderTtlMs } = config;
    const own = { store, holder: this.id, ttlMs: leaderTtlMs };
    if (config.election === "postgres" || !redis.use) return createPostgresElection(own);
    const { RedisElection } = await import("./redis-election.ts");
    const connectTimeoutMs = config.redisHealthCheckTimeoutMs;
    return new RedisElection({ ...own, url: redis.low, connectTimeoutMs, events });
  }
}
