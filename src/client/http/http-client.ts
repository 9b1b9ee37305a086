// The in-process client's methods over HTTP, typed by the same job definitions. A call that enqueues makes
// its idempotency key once, so that saying it again after a lost answer gives the same job.

import { MillraceError } from "../../domain/errors.ts";
import { isTerminal } from "../../domain/job-state.ts";
import type { QueueSettings } from "../../store/queue.ts";
import type { Enqueued, Reprocessed, WorkerPresence } from "../../store/store.ts";
import type { JobDefinition } from "../../worker/job-definition.ts";
import { checkPayloads } from "../check-payloads.ts";
import { RemoteBreakers } from "./breakers.ts";
import { HttpCaller, type HttpClientOptions, pause } from "./caller.ts";
import { newRemoteJob, type RemoteEnqueueOptions } from "./new-remote-job.ts";
import {
  configureQueue,
  listDeadLetters,
  listQueues,
  listWorkers,
  pauseQueue,
  type RemoteDeadLetter,
  type RemoteDeadLetterFilter,
  type RemoteQueue,
} from "./operations.ts";
import {
  type FoundJob,
  type RemoteExplanation,
  type RemoteJob,
  toExplanation,
  toFoundJob,
  toRemoteJob,
} from "./remote-job.ts";
import { RemoteTenants } from "./tenants.ts";

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface FindOptions {
  readonly tenant?: string;
  /** 200 at most. */
  readonly limit?: number;
}

type Wire = Record<string, unknown>;
const mostPerCall = 1_000;

export class HttpClient {
  readonly breakers: RemoteBreakers;
  readonly tenants: RemoteTenants;
  readonly #caller: HttpCaller;

  constructor(options: HttpClientOptions) {
    this.#caller = new HttpCaller(options);
    this.breakers = new RemoteBreakers(this.#caller);
    this.tenants = new RemoteTenants(this.#caller);
  }

  /** For robots, and for routes that have no method here. */
  get caller(): HttpCaller {
    return this.#caller;
  }

  async enqueue<Input>(
    job: JobDefinition<Input, never, unknown>,
    payload: NoInfer<Input>,
    options: RemoteEnqueueOptions = {},
  ): Promise<Enqueued> {
    const body = await this.#newJob(job, payload, options);
    return this.#caller.call("POST", "/api/jobs", { body });
  }

  /** In calls of 1,000, each stored whole or not at all. */
  async enqueueMany<Input>(
    job: JobDefinition<Input, never, unknown>,
    payloads: readonly NoInfer<Input>[],
    options:
      | RemoteEnqueueOptions
      | ((payload: NoInfer<Input>, index: number) => RemoteEnqueueOptions) = {},
  ): Promise<Enqueued[]> {
    checkPayloads(payloads);
    const optionsOf = typeof options === "function" ? options : () => options;
    // All are checked before any is sent.
    const all: Wire[] = [];
    for (const [i, payload] of payloads.entries())
      all.push(await this.#newJob(job, payload, optionsOf(payload, i)));
    const enqueued: Enqueued[] = [];
    for (let from = 0; from < all.length; from += mostPerCall) {
      const jobs = all.slice(from, from + mostPerCall);
      const answer = await this.#caller.call<{ jobs: Enqueued[] }>("POST", "/api/jobs", {
        body: { jobs },
      });
      enqueued.push(...answer.jobs);
    }
    return enqueued;
  }

  /** Keys of people see the payload if they ask for it, which is noted. */
  async get(id: string, options: { readonly payload?: boolean } = {}): Promise<RemoteJob | null> {
    const query = { include_payload: options.payload };
    const path = `/api/jobs/${encodeURIComponent(id)}`;
    const found = await orNull(this.#caller.call<Wire>("GET", path, { query }), "JOB_NOT_FOUND");
    return found === null ? null : toRemoteJob(found);
  }

  async findByKey(key: string, tenant = this.#caller.tenant): Promise<RemoteJob | null> {
    const query = { idempotency_key: key, tenant_id: tenant };
    const { jobs } = await this.#caller.call<{ jobs: Wire[] }>("GET", "/api/jobs", { query });
    return jobs[0] === undefined ? null : this.get(String(jobs[0].id));
  }

  /** The newest jobs with this value in a payload field that their type declares as a label. */
  async findByLabel(
    name: string,
    value: string | number | boolean,
    { tenant = this.#caller.tenant, limit = 50 }: FindOptions = {},
  ): Promise<FoundJob[]> {
    const query = { label: `${name}:${value}`, tenant_id: tenant, limit };
    const { jobs } = await this.#caller.call<{ jobs: Wire[] }>("GET", "/api/jobs", { query });
    return jobs.map(toFoundJob);
  }

  /** Waits for the job's end and gives its result; throws JOB_FAILED when it ended otherwise. */
  async result(id: string, options: WaitOptions = {}): Promise<unknown> {
    const { state, result, error, payloadMasked } = await this.waitFor(id, options);
    // A key of people is shown a result when it asks for the job with its payload.
    if (state === "completed")
      return payloadMasked ? (await this.get(id, { payload: true }))?.result : result;
    throw new MillraceError("JOB_FAILED", error?.message ?? `Job ${id} is ${state}.`, {
      details: { state, errorClass: error?.class ?? null },
    });
  }

  async waitFor(id: string, { timeoutMs = 60_000, signal }: WaitOptions = {}): Promise<RemoteJob> {
    const until = Date.now() + timeoutMs;
    for (let tries = 0; ; tries++) {
      const job = await this.get(id);
      if (job === null) throw new MillraceError("JOB_NOT_FOUND", `There is no job ${id}.`);
      if (isTerminal(job.state)) return job;
      if (signal?.aborted) throw signal.reason;
      const { state } = job;
      if (Date.now() >= until)
        throw new MillraceError("TIMEOUT", `Job ${id} is still ${state}.`, { details: { state } });
      await pause(Math.min(1_000, 50 * 2 ** Math.min(tries, 5)), signal);
    }
  }

  /** Why the job is not running now. */
  async explain(id: string): Promise<RemoteExplanation> {
    const path = `/api/jobs/${encodeURIComponent(id)}/explain`;
    return toExplanation(await this.#caller.call<Wire>("GET", path));
  }

  async cancel(id: string, reason?: string): Promise<"cancelled" | "requested" | "ended"> {
    const body = reason === undefined ? {} : { reason };
    const path = `/api/jobs/${encodeURIComponent(id)}/cancel`;
    const call = this.#caller.call<{ result: "cancelled" | "requested" }>("POST", path, { body });
    return (await orNull(call, "ILLEGAL_TRANSITION"))?.result ?? "ended";
  }

  /** Runs a dead, cancelled or expired job again as a new job that is linked to the old one. */
  async reprocess(id: string, reason: string): Promise<Reprocessed> {
    const path = `/api/jobs/${encodeURIComponent(id)}/retry`;
    const made = await this.#caller.call<Record<string, string>>("POST", path, {
      body: { notes: reason },
      isRepeatable: false,
    });
    return { id: String(made.new_job_id), idempotencyKey: String(made.new_idempotency_key) };
  }

  async discard(id: string, reason: string): Promise<void> {
    const path = `/api/jobs/admin/dlq/${encodeURIComponent(id)}/discard`;
    await this.#caller.call("POST", path, { body: { notes: reason }, isRepeatable: false });
  }

  async delete(id: string, reason: string): Promise<void> {
    const path = `/api/queue-items/${encodeURIComponent(id)}`;
    await this.#caller.call("DELETE", path, { query: { notes: reason }, isRepeatable: false });
  }

  /** Those that wait for review, the newest first. */
  deadLetters(filter: RemoteDeadLetterFilter = {}, limit = 100): Promise<RemoteDeadLetter[]> {
    return listDeadLetters(this.#caller, filter, limit);
  }

  queues(): Promise<RemoteQueue[]> {
    return listQueues(this.#caller);
  }

  /** Changes the queue of this name, or makes it. */
  configureQueue(name: string, settings: QueueSettings): Promise<RemoteQueue> {
    return configureQueue(this.#caller, name, settings);
  }

  pauseQueue(name: string): Promise<RemoteQueue> {
    return pauseQueue(this.#caller, name, true);
  }

  resumeQueue(name: string): Promise<RemoteQueue> {
    return pauseQueue(this.#caller, name, false);
  }

  workers(): Promise<WorkerPresence[]> {
    return listWorkers(this.#caller);
  }

  #newJob<Input>(
    job: JobDefinition<Input, never, unknown>,
    payload: unknown,
    options: RemoteEnqueueOptions,
  ): Promise<Wire> {
    const definition = job as unknown as JobDefinition;
    return newRemoteJob(definition, payload, options, this.#caller.tenant);
  }
}

async function orNull<T>(call: Promise<T>, code: string): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof MillraceError && error.code === code) return null;
    throw error;
  }
}
