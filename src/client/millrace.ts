import { hostname } from "node:os";
import { type Config, loadConfig, type Options } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Job } from "../domain/job.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { Events } from "../runtime/events.ts";
import { createLog, type Log, logEvents } from "../runtime/log.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type {
  CancelResult,
  DeadLetterFilter,
  Enqueued,
  NewJob,
  Notice,
  Queue,
  QueueCounts,
  QueueSettings,
  Reprocessed,
  Store,
  Transaction,
} from "../store/store.ts";
import { Executor } from "../worker/executor.ts";
import {
  type AnyJobDefinition,
  checkName,
  checkNumber,
  type JobDefinition,
} from "../worker/job-definition.ts";
import { type DefaultHandler, Registry } from "../worker/registry.ts";
import { Worker } from "../worker/worker.ts";
import { Calls } from "./calls.ts";
import { Capacity } from "./capacity.ts";
import { enqueueIn } from "./enqueue-in.ts";
import { Enqueuer } from "./enqueuer.ts";
import { type EnqueueOptions, newJob, validateSchema } from "./new-job.ts";
import { type OpenedStore, openStore } from "./open-store.ts";
import { QueueCache } from "./queue-cache.ts";
import { checkQueueSettings } from "./queue-settings.ts";
import { type ResultOptions, resultOf, waitForEnd } from "./result.ts";
import { Upkeep } from "./upkeep.ts";

export interface ConnectOptions extends Options {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly log?: Log;
}

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

type Definition = JobDefinition<unknown, unknown, unknown>;
const mostPerFlush = 1_000;

export class Millrace {
  readonly config: Config;
  readonly events: Events;
  readonly #opened: OpenedStore;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #log: Log;
  readonly #queues: QueueCache;
  readonly #capacity: Capacity;
  readonly #enqueuers: { ready: Enqueuer; named: Enqueuer };
  readonly #workers = new Set<Worker>();
  readonly #calls = new Calls();
  #upkeep: Upkeep | null = null;
  #listener: Promise<{ close(): Promise<void> }> | null = null;
  #stopping: Promise<void> | null = null;

  private constructor(
    config: Config,
    opened: OpenedStore,
    events: Events,
    log: Log,
    clock: Clock,
    random: () => number,
  ) {
    this.config = config;
    this.events = events;
    this.#opened = opened;
    this.#store = opened.store;
    this.#clock = clock;
    this.#random = random;
    this.#log = log;
    this.#queues = new QueueCache(opened.store, clock);
    this.#capacity = new Capacity(opened.store, this.#queues, events);
    this.#enqueuers = {
      ready: this.#createEnqueuer("ready"),
      named: this.#createEnqueuer("named"),
    };
  }

  /** DATABASE_URL, or an embedded PostgreSQL that starts by itself. */
  static async connect(options: ConnectOptions = {}): Promise<Millrace> {
    const config = loadConfig(options);
    const events = new Events();
    const log = options.log ?? createLog(config.logLevel);
    logEvents(events, log, config.logLevel);
    const clock = options.clock ?? systemClock;
    const random = options.random ?? Math.random;
    const opened = await openStore(config, { events, clock, random });
    return new Millrace(config, opened, events, log, clock, random);
  }

  get databaseUrl(): string {
    return this.#opened.url;
  }

  get store(): Store {
    return this.#store;
  }

  async enqueue<Input>(
    job: JobDefinition<Input, never, unknown>,
    payload: NoInfer<Input>,
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    const definition = job as unknown as Definition;
    const making = this.#make(definition, payload, options);
    const made = making instanceof Promise ? await making : making;
    const [enqueued] = await this.#send([made], options.tx);
    return this.#enqueued(definition, made, enqueued);
  }

  /** All of them with one call; in batches of 1,000, each stored whole or not at all. */
  async enqueueMany<Input>(
    job: JobDefinition<Input, never, unknown>,
    payloads: readonly NoInfer<Input>[],
    options: EnqueueOptions | ((payload: NoInfer<Input>, index: number) => EnqueueOptions) = {},
  ): Promise<Enqueued[]> {
    const definition = job as unknown as Definition;
    const optionsOf = (payload: Input, i: number) =>
      typeof options === "function" ? options(payload, i) : options;
    const made: NewJob[] = [];
    for (const [i, payload] of payloads.entries()) {
      const making = this.#make(definition, payload, optionsOf(payload, i));
      made.push(making instanceof Promise ? await making : making);
    }
    const first = payloads[0];
    if (first === undefined) return [];
    const { tx } = optionsOf(first, 0);
    const answers = await (tx === undefined ? this.#sendMany(made) : this.#send(made, tx));
    return answers.map((answer, i) => this.#enqueued(definition, made[i], answer));
  }

  async get(id: string): Promise<Job | null> {
    checkId(id);
    return (await this.#calls.track(() => this.#store.find([id])))[0] ?? null;
  }

  async findByKey(key: string, tenant = "default"): Promise<Job | null> {
    const id = await this.#calls.track(() => this.#store.findByKey(tenant, key));
    return id === null ? null : this.get(id);
  }

  /** Waits for the job's end and gives its result; throws JOB_FAILED when it ended otherwise. */
  async result(id: string, options: ResultOptions = {}): Promise<unknown> {
    return resultOf(await this.waitFor(id, options));
  }

  async waitFor(id: string, options: ResultOptions = {}): Promise<Job> {
    const find = (wanted: string) => this.get(wanted);
    return waitForEnd(id, options, {
      find,
      clock: this.#clock,
      random: this.#random,
      events: this.events,
    });
  }

  async cancel(id: string, reason?: string): Promise<CancelResult> {
    checkId(id);
    const result = await this.#calls.track(() => this.#store.cancel(id, reason ?? null));
    if (result === "unknown") throw new MillraceError("JOB_NOT_FOUND", `There is no job ${id}.`);
    return result;
  }

  async delete(id: string, reason: string, actor = "api"): Promise<void> {
    checkId(id);
    const repair = { reason: needReason(reason), actor };
    const deleted = await this.#calls.track(() => this.#store.delete(id, repair));
    if (deleted) return;
    const job = await this.get(id);
    if (job === null) throw new MillraceError("JOB_NOT_FOUND", `There is no job ${id}.`);
    if (job.state !== "deleted")
      throw new MillraceError("ILLEGAL_TRANSITION", `Job ${id} is ${job.state}.`);
  }

  async deadLetters(filter: DeadLetterFilter = {}, limit = 100): Promise<Job[]> {
    return this.#calls.track(() => this.#store.deadLetters(filter, limit));
  }

  /** Runs a dead, cancelled or expired job again as a new job that is linked to the old one. */
  async reprocess(id: string, reason: string, actor = "api"): Promise<Reprocessed> {
    checkId(id);
    const repair = { reason: needReason(reason), actor };
    const made = await this.#calls.track(() => this.#store.reprocess(id, uuidv7(), repair));
    this.#hear({ kind: "ready", queueIds: [], late: false });
    return made;
  }

  async discard(id: string, reason: string, actor = "api"): Promise<void> {
    checkId(id);
    const repair = { reason: needReason(reason), actor };
    await this.#calls.track(() => this.#store.discard(id, repair));
  }

  async configureQueue(name: string, settings: QueueSettings): Promise<Queue> {
    checkName("queue", name);
    checkQueueSettings(settings);
    const queue = await this.#calls.track(() => this.#store.configureQueue("", name, settings));
    this.#queues.put(queue);
    return queue;
  }

  async pauseQueue(name: string): Promise<Queue> {
    return this.#calls.track(() => this.#store.pauseQueue("", name, true));
  }

  async resumeQueue(name: string): Promise<Queue> {
    const queue = await this.#calls.track(() => this.#store.pauseQueue("", name, false));
    this.#hear({ kind: "ready", queueIds: [queue.id], late: true });
    return queue;
  }

  async queues(): Promise<(Queue & { counts: QueueCounts })[]> {
    const [queues, counts] = await this.#calls.track(async () => {
      const all = await this.#store.queues();
      return [all, await this.#store.counts(all.map((queue) => queue.id))] as const;
    });
    return queues.map((queue) => ({ ...queue, counts: counts.get(queue.id) as QueueCounts }));
  }

  async work(definitions: readonly AnyJobDefinition[], options: WorkOptions = {}): Promise<Worker> {
    if (this.#stopping !== null) throw new MillraceError("STOPPED");
    const registry = new Registry(definitions, options.defaultHandler);
    const names = [...new Set([...registry.queues, ...(options.queues ?? [])])];
    if (names.length === 0) names.push("default");
    const queues = await this.#queues.ensure(names.map((name) => checkName("queue", name)));
    this.#startUpkeep();
    await this.#listen();
    const worker = this.#createWorker(registry, queues, options);
    await worker.start();
    this.#workers.add(worker);
    return worker;
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.#upkeep?.stop();
    await (await this.#listener)?.close();
    await this.#calls.close();
    await Promise.all([this.#enqueuers.ready.close(), this.#enqueuers.named.close()]);
    await this.#opened.close();
    this.events.emit("millrace.stopped", {});
  }

  /** Without a promise where nothing has to be waited for: this is on the way of every job. */
  #make(
    definition: Definition,
    payload: unknown,
    options: EnqueueOptions,
  ): NewJob | Promise<NewJob> {
    // Handlers that finish while we stop may still enqueue what comes next.
    if (this.#calls.closed) throw new MillraceError("STOPPED");
    const queue = this.#queues.known(definition.queue);
    if (queue === undefined) {
      const reading = this.#calls.track(() => this.#queues.get(definition.queue));
      return reading.then(() => this.#make(definition, payload, options));
    }
    // The rules come first: a recursive schema would drown in what they refuse.
    const made = newJob(definition, payload, options, queue, this.config, this.events);
    const validating = validateSchema(definition, payload);
    return validating === undefined ? made : validating.then(() => made);
  }

  async #sendMany(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const refused = await this.#calls.track(() => this.#capacity.refusals([{ jobs }]));
    for (const error of refused.values()) throw error;
    const batches: Promise<Enqueued[]>[] = [];
    for (let from = 0; from < jobs.length; from += mostPerFlush) {
      batches.push(this.#send(jobs.slice(from, from + mostPerFlush)));
    }
    return (await Promise.all(batches)).flat();
  }

  async #send(jobs: readonly NewJob[], tx?: Transaction): Promise<Enqueued[]> {
    if (tx !== undefined) {
      const through = { store: this.#store, capacity: this.#capacity };
      return this.#calls.track(() => enqueueIn(tx, jobs, through));
    }
    const named = jobs.some(
      (job) => job.key !== undefined || job.delayMs !== undefined || job.uniqueReference === true,
    );
    return this.#enqueuers[named ? "named" : "ready"].enqueue(jobs);
  }

  #enqueued(
    definition: Definition,
    made: NewJob | undefined,
    enqueued: Enqueued | undefined,
  ): Enqueued {
    if (made === undefined || enqueued === undefined)
      throw new MillraceError("DATABASE_UNAVAILABLE");
    if (this.events.wants("job.enqueued")) {
      const { type, queue } = definition;
      this.events.emit("job.enqueued", { ...enqueued, type, queue, tenant: made.tenant });
    }
    return enqueued;
  }

  #createEnqueuer(kind: "ready" | "named"): Enqueuer {
    return new Enqueuer({
      session: this.#store.producer(kind),
      keyWaitMs: this.config.keyWaitMs,
      bulkAlone: kind === "named",
      clock: this.#clock,
      notices: this.#store.notices,
      admit: (calls) => this.#capacity.refusals(calls),
      localWorkers: () => (kind === "ready" ? this.#workers : []),
      hear: (notice) => this.#hear(notice),
    });
  }

  #createWorker(registry: Registry, queues: readonly Queue[], options: WorkOptions): Worker {
    const { config } = this;
    const shared = { clock: this.#clock, random: this.#random, events: this.events };
    const executor = new Executor({
      registry,
      log: this.#log,
      random: this.#random,
      resultLimitBytes: config.resultLimitBytes,
    });
    return new Worker({
      ...shared,
      name: options.name ?? `${hostname()}:${process.pid}:${uuidv7().slice(-4)}`,
      store: this.#store,
      registry,
      executor,
      queueIds: queues.map((queue) => queue.id),
      queueNames: queues.map((queue) => queue.name),
      concurrency: concurrencyOf(options.concurrency),
      pollMs: config.pollMs,
      leaseMs: config.leaseMs,
      renewMs: config.renewMs,
      drainMs: checkNumber("drainMs", options.drainMs, 0, 2_147_483_647) ?? config.drainMs,
    });
  }

  #startUpkeep(): void {
    if (this.#upkeep !== null) return;
    this.#upkeep = new Upkeep({
      store: this.#store,
      config: this.config,
      hear: (notice) => this.#hear(notice),
      settled: () => [...this.#workers].reduce((sum, worker) => sum + worker.settled, 0),
      clock: this.#clock,
      random: this.#random,
      events: this.events,
    });
    void this.#upkeep.start();
  }

  async #listen(): Promise<void> {
    this.#listener ??= this.#store.listen((notice) => this.#hear(notice));
    await this.#listener;
  }

  #hear(notice: Notice): void {
    if (notice.kind === "due") this.#upkeep?.due();
    if (notice.kind === "queues") this.#queues.invalidate();
    for (const worker of this.#workers) worker.hear(notice);
  }
}

function concurrencyOf(value = 10): number {
  if (Number.isInteger(value) && value >= 1 && value <= 10_000) return value;
  throw new MillraceError("OPTION_INVALID", "concurrency must be a whole number from 1 to 10000.");
}

function needReason(reason: unknown): string {
  if (typeof reason === "string" && reason.trim() !== "" && reason.length <= 2_000) return reason;
  throw new MillraceError("REASON_REQUIRED", "Give a reason of at most 2,000 characters.");
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function checkId(id: string): void {
  if (typeof id !== "string" || !uuid.test(id))
    throw new MillraceError("JOB_NOT_FOUND", "A job id is a UUID.");
}
