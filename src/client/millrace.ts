import type { Config } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Job } from "../domain/job.ts";
import { type Explanation, explain } from "../domain/waiting-reason.ts";
import { Manager } from "../manager/manager.ts";
import type { Broker } from "../queue/broker.ts";
import { systemClock } from "../runtime/clock.ts";
import { Events } from "../runtime/events.ts";
import { loadTracing } from "../runtime/load-tracing.ts";
import { createLog, type Log, logEvents } from "../runtime/log.ts";
import type { Tracing } from "../runtime/tracing.ts";
import type {
  CancelResult,
  DeadLetterFilter,
  Enqueued,
  Queue,
  QueueCounts,
  QueueSettings,
  Reprocessed,
  Store,
  WorkerPresence,
} from "../store/store.ts";
import type { BreakerGuard } from "../worker/breaker-guard.ts";
import type { AnyJobDefinition, JobDefinition } from "../worker/job-definition.ts";
import type { Worker } from "../worker/worker.ts";
import { Breakers } from "./breakers.ts";
import { openBroker } from "./broker.ts";
import { Calls } from "./calls.ts";
import { checkDeadLetterQuery, checkKey, checkNameOf, checkQueueName } from "./check-calls.ts";
import { checkId } from "./check-id.ts";
import { type ConnectOptions, configOf } from "./connect-options.ts";
import { Intake, type JobRequest } from "./intake.ts";
import { type EnqueueOptions, noOptions, type OptionsForMany } from "./new-job.ts";
import { Notifications } from "./notifications.ts";
import { type Context, type OpenedStore, openStore } from "./open-store.ts";
import { countedQueues, type FoundQueues, QueueCache } from "./queue-cache.ts";
import { checkQueueSettings } from "./queue-settings.ts";
import { Repairs, unknownJob } from "./repairs.ts";
import { type ResultOptions, resultOf, waitForEnd } from "./result.ts";
import { closedBy } from "./silent-server.ts";
import { type DrainWait, Tenants } from "./tenants.ts";
import { Triggers } from "./triggers.ts";
import { Webhooks } from "./webhooks.ts";
import { Workers, type WorkOptions } from "./workers.ts";

type Definition = JobDefinition<unknown, unknown, unknown>;

interface Parts extends Context {
  readonly config: Config;
  readonly opened: OpenedStore;
  readonly log: Log;
  readonly tracing: Tracing | null;
}

export class Millrace {
  readonly config: Config;
  readonly events: Events;
  readonly webhooks: Webhooks;
  /** Tells them: runs in as many processes as start it. */
  readonly notifications: Notifications;
  readonly triggers: Triggers;
  readonly tenants: Tenants;
  readonly breakers: Breakers;
  readonly #parts: Parts;
  readonly #store: Store;
  readonly broker: Broker | null;
  readonly #queues: QueueCache;
  readonly #calls = new Calls();
  readonly #workers: Workers;
  readonly #intake: Intake;
  readonly #repairs: Repairs;
  readonly #managers = new Set<Manager>();
  #stopping: Promise<void> | null = null;

  private constructor(parts: Parts) {
    const { clock, config, events, opened } = parts;
    const { store } = opened;
    const broker = openBroker({ ...parts, store });
    this.broker = broker;
    this.#parts = parts;
    this.config = config;
    this.events = events;
    this.#store = store;
    this.#queues = new QueueCache(store, clock);
    this.#repairs = new Repairs({ store, calls: this.#calls, get: (id) => this.get(id) });
    const breakers = new Breakers({ ...parts, store: store.breakers, calls: this.#calls });
    this.breakers = breakers;
    const deliver = () => this.notifications.deliver();
    this.#workers = new Workers({
      ...{ ...parts, store, broker, breakers, deliver },
      queues: this.#queues,
    });
    this.triggers = new Triggers({ ...parts, store, queues: this.#queues, calls: this.#calls });
    this.#intake = new Intake({
      ...parts,
      store,
      broker,
      queues: this.#queues,
      calls: this.#calls,
      localWorkers: () => this.#workers.running,
      hear: (notice) => this.#workers.hear(notice),
    });
    this.tenants = new Tenants({
      flow: store.flow,
      calls: this.#calls,
      clock,
      changed: async () => {
        this.#intake.forgetTenants();
        await this.#workers.refresh();
        this.#workers.hear({ kind: "ready", queueIds: [], late: true });
      },
    });
    this.webhooks = new Webhooks({
      ...{ store: store.webhooks, rules: config.webhooks, clock },
      ...{ calls: this.#calls, intake: this.#intake },
    });
    this.notifications = new Notifications({ ...parts, store, workers: this.#workers });
  }

  /** DATABASE_URL, or an embedded PostgreSQL that starts by itself. */
  static async connect(options: ConnectOptions = {}): Promise<Millrace> {
    const config = configOf(options);
    const events = new Events();
    const log = options.log ?? createLog(config.logLevel);
    logEvents(events, log, config.logLevel);
    const { clock = systemClock, random = Math.random } = options;
    const opened = await openStore(config, { events, clock, random });
    const tracing = await loadTracing(events);
    return new Millrace({ config, opened, events, log, clock, random, tracing });
  }

  get databaseUrl(): string {
    return this.#parts.opened.url;
  }

  get store(): Store {
    return this.#store;
  }

  /** How workers learn of ready jobs: over Redis, or from PostgreSQL alone. */
  get dispatch(): "brokered" | "direct" {
    return this.broker?.canPut === true ? "brokered" : "direct";
  }

  enqueue<Input>(
    job: JobDefinition<Input, never, unknown>,
    payload: NoInfer<Input>,
    options: EnqueueOptions = noOptions,
  ): Promise<Enqueued> {
    return this.#intake.enqueue(job as unknown as Definition, payload, options);
  }

  /** All of them with one call; in batches of 1,000, each stored whole or not at all. */
  enqueueMany<Input>(
    job: JobDefinition<Input, never, unknown>,
    payloads: readonly NoInfer<Input>[],
    options: OptionsForMany<NoInfer<Input>> = noOptions,
  ): Promise<Enqueued[]> {
    const optionsOf = typeof options === "function" ? options : () => options;
    return this.#intake.enqueueMany(job as unknown as Definition, payloads, optionsOf);
  }

  /** The circuit breaker of an outside platform; all processes share it. */
  breaker(name: string): BreakerGuard {
    return this.breakers.guard(name);
  }

  /** Jobs whose queue is known already, of whichever tenant: what a service in front enqueues. */
  async enqueueInto(requests: readonly JobRequest[]): Promise<Enqueued[]> {
    return this.#intake.enqueueInto(requests);
  }

  /** Queues by tenant and name, or by id, as remembered for a few seconds. */
  get queueCache(): FoundQueues {
    return this.#queues;
  }

  async get(id: string): Promise<Job | null> {
    checkId("job", id);
    return (await this.#calls.track(() => this.#store.find([id])))[0] ?? null;
  }

  async findByKey(key: string, tenant = "default"): Promise<Job | null> {
    checkKey(key, tenant);
    const id = await this.#calls.track(() => this.#store.findByKey(tenant, key));
    return id === null ? null : this.get(id);
  }

  /** Waits for the job's end and gives its result; throws JOB_FAILED when it ended otherwise. */
  async result(id: string, options: ResultOptions = {}): Promise<unknown> {
    return resultOf(await this.waitFor(id, options));
  }

  async waitFor(id: string, options: ResultOptions = {}): Promise<Job> {
    return waitForEnd(id, options, { ...this.#parts, find: (wanted) => this.get(wanted) });
  }

  async cancel(id: string, reason?: string): Promise<CancelResult> {
    return this.#repairs.cancel(id, reason);
  }

  async delete(id: string, reason: string, actor = "api"): Promise<void> {
    await this.#repairs.delete(id, reason, actor);
  }

  async deadLetters(filter: DeadLetterFilter = {}, limit = 100): Promise<Job[]> {
    checkDeadLetterQuery(filter, limit);
    return this.#calls.track(() => this.#store.deadLetters(filter, limit));
  }

  /** Runs a dead, cancelled or expired job again as a new job that is linked to the old one. */
  async reprocess(id: string, reason: string, actor = "api"): Promise<Reprocessed> {
    const made = await this.#repairs.reprocess(id, reason, actor);
    this.#workers.hear({ kind: "ready", queueIds: [], late: false });
    return made;
  }

  async discard(id: string, reason: string, actor = "api"): Promise<void> {
    await this.#repairs.discard(id, reason, actor);
  }

  async configureQueue(name: string, settings: QueueSettings): Promise<Queue> {
    checkNameOf("queue", name);
    checkQueueSettings(settings);
    const queue = await this.#calls.track(() => this.#store.configureQueue("", name, settings));
    this.#queues.put(queue);
    await this.#workers.refresh();
    return queue;
  }

  async pauseQueue(name: string): Promise<Queue> {
    checkQueueName(name);
    return this.#calls.track(() => this.#store.pauseQueue("", name, true));
  }

  async resumeQueue(name: string): Promise<Queue> {
    checkQueueName(name);
    const queue = await this.#calls.track(() => this.#store.pauseQueue("", name, false));
    this.#workers.hear({ kind: "ready", queueIds: [queue.id], late: true });
    return queue;
  }

  /** Pauses the queue, and resolves when nothing of it runs any more. */
  async drainQueue(name: string, wait: DrainWait = {}): Promise<Queue> {
    const owner = ({ id }: Queue) => ({ queueId: id });
    return this.tenants.drained(wait, () => this.pauseQueue(name), owner);
  }

  /** Why the job is not running now. */
  async explain(id: string): Promise<Explanation> {
    checkId("job", id);
    const facts = await this.#calls.track(() => this.#store.flow.factsOf(id));
    if (facts === null) throw unknownJob(id);
    return explain(facts);
  }

  async queues(): Promise<(Queue & { counts: QueueCounts })[]> {
    return this.#calls.track(() => countedQueues(this.#store));
  }

  async work(definitions: readonly AnyJobDefinition[], options: WorkOptions = {}): Promise<Worker> {
    if (this.#stopping !== null) throw new MillraceError("STOPPED");
    return this.#workers.start(definitions, options);
  }

  /** Takes part in the election of a leader, and keeps the queue healthy while it is one. */
  async manage(): Promise<Manager> {
    if (this.#stopping !== null) throw new MillraceError("STOPPED");
    const { deliver } = this.notifications;
    const own = { store: this.#store, broker: this.broker, deliver };
    const manager = new Manager({ ...this.#parts, ...own });
    this.#managers.add(manager);
    await manager.start();
    // It was stopped with everything else, or will be in a moment.
    if (this.#stopping !== null) throw new MillraceError("STOPPED");
    return manager;
  }

  /** Who works for this database: the living, and for a day those who have died. */
  async workers(): Promise<WorkerPresence[]> {
    return this.#calls.track(() => this.#store.workers());
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    const services = [...this.#managers, this.#workers];
    await Promise.all([this.notifications.close(), ...services.map((service) => service.stop())]);
    await this.breakers.stop();
    const closing = this.#calls.close().then(() => this.#intake.close());
    await closedBy(this.#parts, closing);
    await this.broker?.close();
    await this.#parts.opened.close();
    this.events.emit("millrace.stopped", {});
  }
}
