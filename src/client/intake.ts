// The way in: from a definition and a payload to an acknowledged job.

import type { Config } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { TraceContext, Tracing } from "../runtime/tracing.ts";
import type { Enqueued, NewJob, Notice, Queue, Store, Transaction } from "../store/store.ts";
import type { JobDefinition } from "../worker/job-definition.ts";
import { acknowledge } from "./accepted.ts";
import type { Calls } from "./calls.ts";
import { answersOrThrow, Capacity } from "./capacity.ts";
import { counted } from "./capacity-bounds.ts";
import { checkPayloads } from "./check-payloads.ts";
import { Door, type DoorBucket } from "./door.ts";
import { bucketsFor } from "./door-buckets.ts";
import { enqueueIn } from "./enqueue-in.ts";
import { Enqueuer, type HintTaker } from "./enqueuer.ts";
import type { LocalWorker } from "./immediate-claim.ts";
import { asking, delayed, needsNames, onlyTransaction, traced } from "./job-changes.ts";
import { checkCall, type EnqueueOptions, newJob, noOptions, validateSchema } from "./new-job.ts";
import { Placement } from "./placement.ts";
import { PlainJobs } from "./plain-jobs.ts";
import type { QueueCache } from "./queue-cache.ts";
import { StandingOffers } from "./standing-offers.ts";
import { isTold, telling } from "./telling.ts";
import { TenantCache } from "./tenant-cache.ts";

export interface IntakeOptions {
  readonly store: Store;
  readonly config: Config;
  readonly queues: QueueCache;
  readonly calls: Calls;
  readonly localWorkers: () => Iterable<{ readonly local: LocalWorker }>;
  readonly broker: HintTaker | null;
  readonly hear: (notice: Notice) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
  readonly tracing: Tracing | null;
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
  /** What belongs to the request beyond type, queue, tenant and payload: another text is another request. */
  readonly asks?: string | undefined;
}

const mostPerFlush = 1_000;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #capacity: Capacity;
  readonly #placement: Placement;
  readonly #tenants: TenantCache;
  readonly #door: Door;
  readonly #plain: PlainJobs;
  readonly #ready: Enqueuer;
  readonly #named: Enqueuer;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const { store, queues, clock, events } = options;
    this.#placement = new Placement(store.flow, queues);
    this.#tenants = new TenantCache(store.flow, clock);
    this.#capacity = new Capacity({ store, queues, tenants: this.#tenants, events });
    this.#door = new Door(store.flow, clock);
    this.#plain = new PlainJobs({ ...options, tenants: this.#tenants });
    this.#ready = this.#createEnqueuer("ready");
    this.#named = this.#createEnqueuer("named");
  }

  enqueue(definition: Definition, payload: unknown, options: EnqueueOptions): Promise<Enqueued> {
    // Most often nobody listens, and a function for that is dear on the way of a pickup.
    if (!isTold(this.#options)) return this.#enqueue(definition, payload, options, undefined);
    return telling(this.#options, definition, 1, (carried) =>
      this.#enqueue(definition, payload, options, carried),
    );
  }

  async #enqueue(
    definition: Definition,
    payload: unknown,
    options: EnqueueOptions,
    carried: TraceContext | undefined,
  ): Promise<Enqueued> {
    const isBare = options === noOptions && carried === undefined;
    const plain = isBare ? this.#plain.make(definition, payload) : null;
    if (plain !== null) {
      const answers = await this.#ready.enqueue(plain);
      return acknowledge(this.#options.events, plain, answers, () => definition)[0] as Enqueued;
    }
    const making = this.#make(definition, payload, options);
    const made = traced(making instanceof Promise ? await making : making, carried);
    const buckets = this.#buckets(definition, payload, made);
    const jobs = [made];
    if (isBare) this.#plain.note(definition, made);
    const answers = await (buckets.length === 0
      ? this.#send(jobs, options.tx)
      : this.#admit(jobs, [buckets], definition, options.tx));
    return acknowledge(this.#options.events, jobs, answers, () => definition)[0] as Enqueued;
  }

  enqueueMany<Input>(
    definition: Definition,
    payloads: readonly Input[],
    optionsOf: (payload: Input, index: number) => EnqueueOptions,
  ): Promise<Enqueued[]> {
    return telling(this.#options, definition, payloads?.length, (carried) =>
      this.#enqueueMany(definition, payloads, optionsOf, carried),
    );
  }

  async #enqueueMany<Input>(
    definition: Definition,
    payloads: readonly Input[],
    optionsOf: (payload: Input, index: number) => EnqueueOptions,
    carried: TraceContext | undefined,
  ): Promise<Enqueued[]> {
    checkPayloads(payloads);
    const made: NewJob[] = [];
    const transactions = new Set<Transaction | undefined>();
    for (const [i, payload] of payloads.entries()) {
      const options = optionsOf(payload, i);
      const making = this.#make(definition, payload, options);
      made.push(traced(making instanceof Promise ? await making : making, carried));
      transactions.add(options.tx);
    }
    if (made.length === 0) return [];
    const tx = onlyTransaction(transactions);
    const buckets = made.map((job, i) => this.#buckets(definition, payloads[i], job));
    const answers = await this.#admit(made, buckets, definition, tx);
    return acknowledge(this.#options.events, made, answers, () => definition);
  }

  /** A tenant's settings have changed. */
  forgetTenants(): void {
    this.#tenants.invalidate();
  }

  /** All of them or none, if there are at most 1,000. */
  enqueueInto(requests: readonly JobRequest[]): Promise<Enqueued[]> {
    const [first] = requests;
    if (first === undefined) return Promise.resolve([]);
    return telling(this.#options, first.definition, requests.length, (carried) =>
      this.#enqueueInto(requests, carried),
    );
  }

  async #enqueueInto(
    requests: readonly JobRequest[],
    carried: TraceContext | undefined,
  ): Promise<Enqueued[]> {
    const { calls, config, events } = this.#options;
    if (calls.closed) throw new MillraceError("STOPPED");
    if (!this.#tenants.isLoaded) await calls.track(() => this.#tenants.load());
    const made: NewJob[] = [];
    for (const { definition, payload, options, queue, weight, asks } of requests) {
      const plain = newJob(definition, payload, options, queue, config, events);
      const job = traced(asking(plain, asks), carried);
      const placed = this.#place(weight === undefined ? job : { ...job, weight }, queue);
      made.push(placed instanceof Promise ? await placed : placed);
    }
    const of = (i: number) => requests[i] as JobRequest;
    const buckets = made.map((job, i) =>
      this.#buckets(of(i).definition, of(i).payload, job, of(i).queue),
    );
    const answers = await this.#admit(made, buckets, of(0).definition);
    return acknowledge(events, made, answers, (i) => of(i).definition);
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
    if (validating === undefined) return this.#place(made, queue);
    return validating.then(() => this.#place(made, queue));
  }

  #place(made: NewJob, queue: Queue): NewJob | Promise<NewJob> {
    const settings = this.#tenants.known(made.tenant);
    const placed = this.#placement.place(made, queue);
    if (placed instanceof Promise) return placed.then((job) => counted(job, queue, settings));
    return counted(placed, queue, settings);
  }

  #buckets(
    definition: Definition,
    payload: unknown,
    job: NewJob,
    queue = this.#options.queues.known(definition.queue),
  ): readonly DoorBucket[] {
    return bucketsFor(definition, payload, job, queue, this.#tenants.known(job.tenant));
  }

  async #admit(
    made: NewJob[],
    buckets: readonly (readonly DoorBucket[])[],
    definition: Definition,
    tx?: Transaction,
  ): Promise<readonly Enqueued[]> {
    const isFree = buckets.every((one) => one.length === 0);
    const passed = isFree ? made : await this.#passDoor(made, buckets, definition);
    if (!Array.isArray(passed)) return passed.repeated;
    const alone = passed.length === 1 || tx !== undefined;
    const storing = alone ? this.#send(passed, tx) : this.#sendMany(passed);
    return await (isFree ? storing : this.#door.charge(buckets, storing));
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
    const named = jobs.some(needsNames);
    return (named ? this.#named : this.#ready).enqueue(jobs);
  }

  #createEnqueuer(kind: "ready" | "named"): Enqueuer {
    const { store, config, clock, localWorkers, broker, hear } = this.#options;
    const read = () => store.offers();
    return new Enqueuer({
      session: store.producer(kind),
      keyWaitMs: config.keyWaitMs,
      bulkAlone: kind === "named",
      clock,
      notices: store.notices,
      admit: (calls) => this.#capacity.refusals(calls),
      isFree: (job) => this.#capacity.isFree(job),
      localWorkers: kind === "ready" ? localWorkers : () => [],
      broker: kind === "ready" ? broker : null,
      offers: kind === "ready" ? new StandingOffers({ ...this.#options, read }) : null,
      hear,
    });
  }
}
