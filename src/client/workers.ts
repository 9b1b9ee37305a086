// The workers of this process, and what it does for the queue's health while it has any.

import { hostname } from "node:os";
import type { Config } from "../config.ts";
import {
  checkFunction,
  checkOptions,
  checkText,
  type Known,
  knownNames,
} from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Broker } from "../queue/broker.ts";
import type { Events } from "../runtime/events.ts";
import type { Log } from "../runtime/log.ts";
import type { Tracing } from "../runtime/tracing.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type { Listener, Notice, Queue, Store } from "../store/store.ts";
import { Executor } from "../worker/executor.ts";
import {
  type AnyJobDefinition,
  checkName,
  checkNumber,
  isDefinition,
} from "../worker/job-definition.ts";
import { type DefaultHandler, Registry } from "../worker/registry.ts";
import { Suspicion } from "../worker/suspicion.ts";
import { Worker } from "../worker/worker.ts";
import type { Breakers } from "./breakers.ts";
import type { QueueCache } from "./queue-cache.ts";
import { closedBy, type Server } from "./silent-server.ts";
import { Upkeep } from "./upkeep.ts";

export interface WorkOptions {
  readonly concurrency?: number;
  /** More queues than those of the definitions; with a default handler it may be all there is. */
  readonly queues?: readonly string[];
  /** Runs every type that has no definition. A worker that has one claims every type. */
  readonly defaultHandler?: DefaultHandler;
  readonly name?: string;
  /** How long stop() lets handlers finish before their jobs are given back. */
  readonly drainMs?: number;
}

const known = knownNames({
  ...{ concurrency: true, queues: true, defaultHandler: true, name: true, drainMs: true },
} satisfies Known<WorkOptions>);

function checkWork(definitions: readonly AnyJobDefinition[], options: WorkOptions): void {
  if (!Array.isArray(definitions) || !definitions.every(isDefinition)) {
    const message = "work takes a list of definitions, each made by defineJob.";
    throw new MillraceError("OPTION_INVALID", message);
  }
  checkOptions("work's options", options, known);
  checkFunction("defaultHandler", options.defaultHandler);
  if (options.name !== undefined) checkText("A worker's name", options.name, 200);
  if (options.queues !== undefined && !Array.isArray(options.queues))
    throw new MillraceError("OPTION_INVALID", "queues must be a list of names.");
}

export interface WorkersOptions extends Server {
  readonly store: Store;
  readonly config: Config;
  readonly queues: QueueCache;
  readonly broker: Broker | null;
  readonly breakers: Breakers;
  readonly log: Log;
  readonly tracing: Tracing | null;
  /** Makes this process deliver to webhooks, if it does not yet. */
  readonly deliver: () => void;
  readonly random: () => number;
  readonly events: Events;
}

export class Workers {
  readonly #options: WorkersOptions;
  readonly #running = new Set<Worker>();
  /** Those that begin as well: stop() ends them too. */
  readonly #created = new Set<Worker>();
  readonly #starting = new Set<Promise<unknown>>();
  #stopped = false;
  /** The server did not answer the worker that ended last. */
  #isSilent = false;
  readonly #hearers = new Set<(notice: Notice) => void>();
  #upkeep: Upkeep | null = null;
  #listener: Promise<Listener> | null = null;
  #settledBefore = 0;
  readonly #suspicion: Suspicion;

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#suspicion = new Suspicion(options.clock);
    options.broker?.onPut((queueId) => {
      for (const worker of this.#running) worker.hinted(queueId);
    });
  }

  get running(): Iterable<Worker> {
    return this.#running;
  }

  /** Whoever is stopped meanwhile hears STOPPED, and nothing of the worker is left. */
  async start(definitions: readonly AnyJobDefinition[], options: WorkOptions): Promise<Worker> {
    this.#refuseStopped();
    checkWork(definitions, options);
    const registry = new Registry(definitions, options.defaultHandler);
    const starting = this.#start(registry, options);
    this.#starting.add(starting);
    try {
      return await starting;
    } catch (error) {
      if (!this.#stopped || isStopped(error)) throw error;
      throw new MillraceError("STOPPED", undefined, { cause: error });
    } finally {
      this.#starting.delete(starting);
    }
  }

  async #start(registry: Registry, options: WorkOptions): Promise<Worker> {
    const names = [...new Set([...registry.queues, ...(options.queues ?? [])])];
    if (names.length === 0) names.push("default");
    const queues = await this.#options.queues.ensure(names.map((name) => checkName("queue", name)));
    this.#refuseStopped();
    this.#startUpkeep();
    const listener = await this.#listen();
    this.#refuseStopped();
    const worker = this.#create(registry, queues, options, listener);
    this.#created.add(worker);
    try {
      await worker.start();
      this.#refuseStopped();
    } catch (error) {
      await worker.stop();
      throw error;
    }
    this.#running.add(worker);
    this.#isSilent = false;
    // Tenants may have queues of their own by these names.
    worker.hear({ kind: "queues" });
    return worker;
  }

  #refuseStopped(): void {
    if (this.#stopped) throw new MillraceError("STOPPED");
  }

  /** One for all workers here. What could not be opened is opened anew next time. */
  async #listen(): Promise<Listener> {
    this.#listener ??= this.#options.store.listen((notice) => this.hear(notice));
    const listening = this.#listener;
    try {
      return await listening;
    } catch (error) {
      if (this.#listener === listening) this.#listener = null;
      throw error;
    }
  }

  /** Wakes whoever a notice concerns, in this process. */
  hear(notice: Notice): void {
    this.#upkeep?.hear(notice);
    if (notice.kind === "queues") this.#options.queues.invalidate();
    this.#options.breakers.hear(notice);
    for (const worker of this.#running) worker.hear(notice);
    for (const hear of this.#hearers) hear(notice);
  }

  /** Queues or tenants have changed: in this process nobody goes by what was before. */
  async refresh(): Promise<void> {
    this.#options.queues.invalidate();
    await Promise.all([...this.#running].map((worker) => worker.refresh()));
  }

  /** Tells others of notices too, as long as there is a worker to listen for. */
  onNotice(hear: (notice: Notice) => void): () => void {
    this.#hearers.add(hear);
    return () => this.#hearers.delete(hear);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#created].map((worker) => worker.stop()));
    await closedBy(this.#options, this.#close(), this.#isSilent);
  }

  async #close(): Promise<void> {
    // Before anything is closed that they may be about to use.
    await Promise.allSettled(this.#starting);
    await this.#upkeep?.stop();
    await (await this.#listener)?.close();
  }

  #create(
    registry: Registry,
    queues: readonly Queue[],
    options: WorkOptions,
    listener: Listener,
  ): Worker {
    const { config, log, store, broker, breakers, clock, random, events } = this.#options;
    const { resultLimitBytes, pollMs, leaseMs, renewMs } = config;
    const worker: Worker = new Worker({
      name: options.name ?? `${hostname()}:${process.pid}:${uuidv7().slice(-4)}`,
      store,
      registry,
      executor: new Executor({
        ...{ registry, log, random, resultLimitBytes, tracing: this.#options.tracing },
        breaker: (platform) => breakers.guard(platform),
      }),
      queues,
      readQueues: () => this.#options.queues.served(queues.map((queue) => queue.name)),
      concurrency: concurrencyOf(options.concurrency),
      hints: broker,
      listener,
      pollMs,
      leaseMs,
      renewMs,
      drainMs: checkNumber("drainMs", options.drainMs, 0, 2_147_483_647) ?? config.drainMs,
      onDelayed: (delayMs) => this.#upkeep?.delayed(delayMs),
      onStopped: (isSilent) => {
        this.#isSilent = isSilent;
        this.#settledBefore += worker.settled;
        this.#created.delete(worker);
        this.#running.delete(worker);
      },
      suspicion: this.#suspicion,
      clock,
      random,
      events,
    });
    return worker;
  }

  #startUpkeep(): void {
    if (this.#upkeep !== null) return;
    this.#upkeep = new Upkeep({
      ...this.#options,
      hear: (notice) => this.hear(notice),
      settled: () =>
        [...this.#running].reduce((sum, worker) => sum + worker.settled, this.#settledBefore),
    });
    void this.#upkeep.start();
  }
}

const isStopped = (error: unknown): boolean =>
  error instanceof MillraceError && error.code === "STOPPED";

function concurrencyOf(value = 10): number {
  if (Number.isInteger(value) && value >= 1 && value <= 10_000) return value;
  throw new MillraceError("OPTION_INVALID", "concurrency must be a whole number from 1 to 10000.");
}
