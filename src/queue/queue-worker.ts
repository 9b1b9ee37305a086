// Runs a handler over any queue: takes what it has room for, runs it in a scope of its own, and tells
// the queue what became of it. An item leaves the worker's hands in exactly one of three ways: acked,
// released with the delay of the retry policy, or buried after its last attempt.

import { describeError } from "../domain/describe-error.ts";
import { type Classifier, classify, type Failure } from "../domain/error-class.ts";
import { defaultRetryPolicy, type RetryPolicy, waitBy } from "../domain/retry-policy.ts";
import { tameError } from "../domain/tame-error.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Service } from "../runtime/service.ts";
import { releaseScope } from "./job-scope.ts";
import type { Queue, QueueItem } from "./queue.ts";
import {
  checkDelay,
  checkFunction,
  checkOptions,
  checkQueue,
  checkTime,
  checkWhole,
} from "./queue-options.ts";

export interface QueueRun<T, S> {
  readonly job: T;
  readonly item: QueueItem<T>;
  /** Made for this job alone. */
  readonly scope: S;
}

export interface QueueWorkerOptions<T, S = undefined> {
  readonly queue: Queue<T>;
  readonly handler: (run: QueueRun<T, S>) => unknown;
  /** Makes what one job needs; released by its dispose method, or its release function. */
  readonly scope?: () => S | Promise<S>;
  readonly name?: string;
  readonly concurrency?: number;
  readonly pollTimeoutMs?: number;
  readonly maxAttempts?: number;
  readonly retryPolicy?: RetryPolicy;
  readonly classifier?: Classifier;
  /** How many exceptions are kept, the latest last. */
  readonly keepExceptions?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly events?: Events;
}

/** The names are those of the wire, hence the snake case. */
export interface WorkerException {
  readonly report_id: string;
  readonly error: string;
  readonly type: string;
}

/** How long to let a queue be that has just failed. */
const pauseMs = 1_000;

export class QueueWorker<T, S = undefined> implements Service {
  readonly name: string;
  readonly #options: QueueWorkerOptions<T, S>;
  readonly #concurrency: number;
  readonly #pollTimeoutMs: number;
  readonly #maxAttempts: number;
  readonly #keepExceptions: number;
  readonly #clock: Clock;
  readonly #running = new Set<Promise<void>>();
  readonly #exceptions: WorkerException[] = [];
  #stop = new AbortController();
  #finished: Promise<void> | undefined;

  constructor(options: QueueWorkerOptions<T, S>) {
    checkOptions(options);
    this.name = options.name ?? "queue worker";
    this.#options = options;
    checkQueue(options.queue);
    checkFunction("handler", options.handler);
    for (const name of ["scope", "retryPolicy", "classifier", "random"] as const) {
      if (options[name] !== undefined) checkFunction(name, options[name]);
    }
    this.#concurrency = checkWhole("concurrency", options.concurrency ?? 1, 1);
    this.#pollTimeoutMs = checkTime("pollTimeoutMs", options.pollTimeoutMs ?? 5_000);
    this.#maxAttempts = checkWhole("maxAttempts", options.maxAttempts ?? 5, 1);
    this.#keepExceptions = checkWhole("keepExceptions", options.keepExceptions ?? 100, 0);
    this.#clock = options.clock ?? systemClock;
  }

  get lastExceptions(): readonly WorkerException[] {
    return [...this.#exceptions];
  }

  /** Resolves when nothing is left running: after `stop`, or when the queue was shut down and drained. */
  get finished(): Promise<void> {
    return this.#finished ?? Promise.resolve();
  }

  async start(): Promise<void> {
    if (this.#finished !== undefined) return;
    this.#stop = new AbortController();
    this.#finished = this.#work().finally(() => {
      this.#finished = undefined;
    });
  }

  /** Takes nothing more, and finishes what it holds. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#finished;
  }

  async #work(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      if (this.#running.size >= this.#concurrency) await Promise.race(this.#running);
      else if (!(await this.#takeSome())) break;
    }
    await Promise.all(this.#running);
  }

  /** False when the queue was shut down and has nothing more to give. */
  async #takeSome(): Promise<boolean> {
    const { queue } = this.#options;
    const max = this.#concurrency - this.#running.size;
    try {
      const { signal } = this.#stop;
      const items = await queue.dequeueMany({ max, timeoutMs: this.#pollTimeoutMs, signal });
      for (const item of items) this.#begin(item);
      if (items.length > 0 || !(await queue.snapshot()).shutdown) return true;
      // A queue that was shut down does not let anybody wait, but what runs may still be released to it.
      return this.#running.size > 0 && Promise.race(this.#running).then(() => true);
    } catch (error) {
      await this.#pauseAfter(error);
      return true;
    }
  }

  #begin(item: QueueItem<T>): void {
    const run = this.#run(item).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  async #run(item: QueueItem<T>): Promise<void> {
    const { queue } = this.#options;
    try {
      await this.#handle(item);
    } catch (error) {
      return this.#fail(item, tameError(error));
    }
    await this.#settle(() => queue.ack(item));
  }

  async #handle(item: QueueItem<T>): Promise<void> {
    const scope = (await this.#options.scope?.()) as S;
    try {
      await this.#options.handler({ job: item.job, item, scope });
    } finally {
      await releaseScope(scope).catch((error) => {
        this.#note(item, tameError(error));
        this.#tell(error);
      });
    }
  }

  async #fail(item: QueueItem<T>, error: unknown): Promise<void> {
    const { queue, events } = this.#options;
    const { id, attempt } = item;
    const { failure, delayMs } = this.#judge(item, error);
    const message = this.#note(item, error, failure);
    if (failure.class === "non_retryable" || attempt >= this.#maxAttempts) {
      events?.emit("item.buried", { id, attempt, class: failure.class, message });
      return this.#settle(() => queue.bury(item, message));
    }
    events?.emit("item.failed", { id, attempt, class: failure.class, delayMs });
    await this.#settle(() => queue.release(item, { delayMs }));
  }

  /** A classifier or policy that fails itself must not keep the item from being released. */
  #judge({ attempt }: QueueItem<T>, error: unknown): { failure: Failure; delayMs: number } {
    const { retryPolicy = defaultRetryPolicy, random = Math.random } = this.#options;
    const failure = this.#classify(error);
    try {
      return { failure, delayMs: checkDelay(waitBy(retryPolicy, failure, attempt, random())) };
    } catch (fault) {
      this.#tell(fault);
      return { failure, delayMs: defaultRetryPolicy(failure, attempt, Math.random()) };
    }
  }

  #classify(error: unknown): Failure {
    try {
      return classify(error, this.#options.classifier);
    } catch (fault) {
      this.#tell(fault);
      return classify(error);
    }
  }

  /** Tries until the queue has answered: an item that nobody settles stays with this process. */
  async #settle(call: () => Promise<boolean>): Promise<void> {
    for (;;) {
      try {
        await call();
        return;
      } catch (error) {
        await this.#pauseAfter(error);
        if (this.#stop.signal.aborted) return;
      }
    }
  }

  /** Answers the error's message. */
  #note(item: QueueItem<T>, error: unknown, failure = classify(error)): string {
    const { message } = describeError(this.name, error, failure);
    this.#exceptions.push({ report_id: reportIdOf(item), error: message, type: typeOf(error) });
    if (this.#exceptions.length > this.#keepExceptions) this.#exceptions.shift();
    return message;
  }

  async #pauseAfter(error: unknown): Promise<void> {
    this.#tell(error);
    await this.#clock.sleep(pauseMs, this.#stop.signal);
  }

  #tell(error: unknown): void {
    this.#options.events?.emit("service.failed", { service: this.name, error });
  }
}

const typeOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);

/** The report's own id where the job has one. */
function reportIdOf<T>({ id, job }: QueueItem<T>): string {
  if (typeof job !== "object" || job === null || !("report_id" in job)) return id;
  const { report_id: own } = job;
  return typeof own === "string" || typeof own === "number" ? String(own) : id;
}
