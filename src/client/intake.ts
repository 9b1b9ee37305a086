// The way in: from a definition and a payload to an acknowledged job.

import type { Config } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Enqueued, NewJob, Notice, Queue, Store, Transaction } from "../store/store.ts";
import type { JobDefinition } from "../worker/job-definition.ts";
import type { Calls } from "./calls.ts";
import { answersOrThrow, Capacity } from "./capacity.ts";
import { Door, type DoorBucket } from "./door.ts";
import { bucketsFor } from "./door-buckets.ts";
import { enqueueIn } from "./enqueue-in.ts";
import { Enqueuer, type HintTaker, type LocalWorker } from "./enqueuer.ts";
import { checkCall, type EnqueueOptions, newJob, validateSchema } from "./new-job.ts";
import { Placement } from "./placement.ts";
import type { QueueCache } from "./queue-cache.ts";
import { TenantCache } from "./tenant-cache.ts";

export interface IntakeOptions {
  readonly store: Store;
  readonly config: Config;
  readonly queues: QueueCache;
  readonly calls: Calls;
  readonly localWorkers: () => Iterable<LocalWorker>;
  readonly broker: HintTaker | null;
  readonly hear: (notice: Notice) => void;
  readonly clock: Clock;
  readonly events: Events;
}

type Definition = JobDefinition<unknown, unknown, unknown>;

/** A job whose queue is known already, of whichever tenant. */
export interface JobRequest {
  readonly definition: Definition;
  readonly payload: unknown;
  readonly options: EnqueueOptions;
  readonly queue: Queue;
  /** Instead of a priority. */
  readonly weight?: number | undefined;
}

const mostPerFlush = 1_000;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #capacity: Capacity;
  readonly #placement: Placement;
  readonly #tenants: TenantCache;
  readonly #door: Door;
  readonly #ready: Enqueuer;
  readonly #named: Enqueuer;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const { store, queues, clock } = options;
    this.#capacity = new Capacity(store, queues, options.events);
    this.#placement = new Placement(store.flow, queues);
    this.#tenants = new TenantCache(store.flow, clock);
    this.#door = new Door(store.flow, clock);
    this.#ready = this.#createEnqueuer("ready");
    this.#named = this.#createEnqueuer("named");
  }

  async enqueue(
    definition: Definition,
    payload: unknown,
    options: EnqueueOptions,
  ): Promise<Enqueued> {
    const making = this.#make(definition, payload, options);
    const made = making instanceof Promise ? await making : making;
    const buckets = this.#buckets(definition, payload, made);
    const passed =
      buckets.length === 0 ? [made] : await this.#passDoor([made], [buckets], definition);
    const [enqueued] = Array.isArray(passed)
      ? await this.#send(passed, options.tx)
      : passed.repeated;
    return this.#acknowledge(definition, made, enqueued);
  }

  async enqueueMany<Input>(
    definition: Definition,
    payloads: readonly Input[],
    optionsOf: (payload: Input, index: number) => EnqueueOptions,
  ): Promise<Enqueued[]> {
    if (!Array.isArray(payloads))
      throw new MillraceError("OPTION_INVALID", "enqueueMany takes a list of payloads.");
    const made: NewJob[] = [];
    const transactions = new Set<Transaction | undefined>();
    for (const [i, payload] of payloads.entries()) {
      const options = optionsOf(payload, i);
      const making = this.#make(definition, payload, options);
      made.push(making instanceof Promise ? await making : making);
      transactions.add(options.tx);
    }
    if (made.length === 0) return [];
    const tx = onlyTransaction(transactions);
    const buckets = made.map((job, i) => this.#buckets(definition, payloads[i], job));
    const passed = buckets.every((one) => one.length === 0)
      ? made
      : await this.#passDoor(made, buckets, definition);
    const answers = Array.isArray(passed)
      ? await (tx === undefined ? this.#sendMany(passed) : this.#send(passed, tx))
      : passed.repeated;
    return answers.map((answer, i) => this.#acknowledge(definition, made[i], answer));
  }

  /** A tenant's settings have changed. */
  forgetTenants(): void {
    this.#tenants.invalidate();
  }

  /** All of them or none, if there are at most 1,000. */
  async enqueueInto(requests: readonly JobRequest[]): Promise<Enqueued[]> {
    const { calls, config, events } = this.#options;
    if (calls.closed) throw new MillraceError("STOPPED");
    const made = requests.map(({ definition, payload, options, queue, weight }) => {
      const job = newJob(definition, payload, options, queue, config, events);
      return weight === undefined ? job : { ...job, weight };
    });
    const answers = await (made.length === 1 ? this.#send(made) : this.#sendMany(made));
    return requests.map(({ definition }, i) => this.#acknowledge(definition, made[i], answers[i]));
  }

  async close(): Promise<void> {
    await Promise.all([this.#ready.close(), this.#named.close()]);
  }

  /** Without a promise where nothing has to be waited for: this is on the way of every job. */
  #make(
    definition: Definition,
    payload: unknown,
    options: EnqueueOptions,
  ): NewJob | Promise<NewJob> {
    const { calls, queues, config, events } = this.#options;
    // Handlers that finish while we stop may still enqueue what comes next.
    if (calls.closed) throw new MillraceError("STOPPED");
    checkCall(definition, options);
    const queue = queues.known(definition.queue);
    if (queue === undefined || !this.#tenants.isLoaded) {
      const reading = calls.track(() =>
        Promise.all([queues.get(definition.queue), this.#tenants.load()]),
      );
      return reading.then(() => this.#make(definition, payload, options));
    }
    // The rules come first: a recursive schema would drown in what they refuse.
    const made = newJob(definition, payload, options, queue, config, events);
    const validating = validateSchema(definition, payload);
    const place = () => this.#placement.place(made, queue);
    return validating === undefined ? place() : validating.then(place);
  }

  #buckets(definition: Definition, payload: unknown, job: NewJob): readonly DoorBucket[] {
    const queue = this.#options.queues.known(definition.queue);
    return bucketsFor(definition, payload, job, queue, this.#tenants.known(job.tenant));
  }

  /** The jobs as they may go in, or the answers to a request that was accepted before. */
  async #passDoor(
    jobs: NewJob[],
    buckets: readonly (readonly DoorBucket[])[],
    { delaysWhenLimited: delays }: Definition,
  ): Promise<NewJob[] | { readonly repeated: readonly Enqueued[] }> {
    const { calls, store } = this.#options;
    try {
      const delaysMs = await calls.track(() => this.#door.pass({ jobs: buckets, delays }));
      return jobs.map((job, i) => delayed(job, delaysMs[i] ?? 0));
    } catch (error) {
      if (!(error instanceof MillraceError) || error.code !== "RATE_LIMITED") throw error;
      const repeated = await calls.track(() => store.repeats(jobs));
      if (repeated === null) throw error;
      return { repeated: answersOrThrow(repeated) };
    }
  }

  async #sendMany(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const { calls } = this.#options;
    const refused = await calls.track(async () => this.#capacity.refusals([{ jobs }]));
    for (const refusal of refused.values()) return answersOrThrow(refusal);
    const batches: Promise<Enqueued[]>[] = [];
    for (let from = 0; from < jobs.length; from += mostPerFlush) {
      batches.push(this.#send(jobs.slice(from, from + mostPerFlush)));
    }
    return (await Promise.all(batches)).flat();
  }

  #send(jobs: readonly NewJob[], tx?: Transaction): Promise<Enqueued[]> {
    const { calls, store } = this.#options;
    if (tx !== undefined) {
      return calls.track(() => enqueueIn(tx, jobs, { store, capacity: this.#capacity }));
    }
    const named = jobs.some(
      (job) => job.key !== undefined || job.delayMs !== undefined || job.uniqueReference === true,
    );
    return (named ? this.#named : this.#ready).enqueue(jobs);
  }

  #acknowledge(
    { type, queue }: Definition,
    made: NewJob | undefined,
    enqueued: Enqueued | undefined,
  ): Enqueued {
    const { events } = this.#options;
    if (made === undefined || enqueued === undefined)
      throw new MillraceError("DATABASE_UNAVAILABLE");
    if (events.wants("job.enqueued")) {
      events.emit("job.enqueued", { ...enqueued, type, queue, tenant: made.tenant });
    }
    return enqueued;
  }

  #createEnqueuer(kind: "ready" | "named"): Enqueuer {
    const { store, config, clock, localWorkers, broker, hear } = this.#options;
    return new Enqueuer({
      session: store.producer(kind),
      keyWaitMs: config.keyWaitMs,
      bulkAlone: kind === "named",
      clock,
      notices: store.notices,
      admit: (calls) => this.#capacity.refusals(calls),
      localWorkers: kind === "ready" ? localWorkers : () => [],
      broker: kind === "ready" ? broker : null,
      hear,
    });
  }
}

const delayed = (job: NewJob, ms: number): NewJob =>
  ms === 0 ? job : { ...job, delayMs: Math.max(job.delayMs ?? 0, ms) };

/** Jobs of one call are stored together: in one transaction of the caller's, or in ours. */
function onlyTransaction(
  transactions: ReadonlySet<Transaction | undefined>,
): Transaction | undefined {
  if (transactions.size > 1) {
    const message = "All jobs of one enqueueMany have the same tx, or none has one.";
    throw new MillraceError("OPTION_INVALID", message);
  }
  return [...transactions][0];
}
