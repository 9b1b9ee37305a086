// A producer's session: numbered flushes on one connection, and the exact answer after a lost one.

import { randomUUID } from "node:crypto";
import { MillraceError } from "../../domain/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/events.ts";
import type {
  Flushed,
  FlushOptions,
  Handover,
  ImmediateClaim,
  NewJob,
  ProducerSession,
} from "../store.ts";
import type { Connection } from "./connection.ts";
import { answersOfCommitted, enqueueJobs, needsTransaction } from "./enqueue.ts";
import { asCoded, isCancelled, isConnectionError, isLockTimeout, isRetryable } from "./failures.ts";
import {
  claiming,
  flushedAndClaimed,
  flushJobs,
  handing,
  isLone,
  refusedPlaces,
  registerProducer,
  resolved,
  sendNotice,
} from "./flush.ts";
import { seenBy } from "./flush-handed.ts";
import type { Flush } from "./flush-parts.ts";
import type { Allowed } from "./migrator.ts";
import type { RunStatement } from "./statement.ts";
import { Tally } from "./tally.ts";

export interface ProducerOptions {
  readonly connection: Connection;
  readonly channel: string;
  readonly kind: "ready" | "named";
  readonly patienceMs: number;
  readonly allowed: Allowed;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

export class PostgresProducer implements ProducerSession {
  readonly #options: ProducerOptions;
  #producer: string | null = null;
  #flushNo = 0;
  readonly #tally: Tally;

  constructor(options: ProducerOptions) {
    this.#options = options;
    this.#tally = new Tally(options.clock);
  }

  flush(jobs: readonly NewJob[], options: FlushOptions): Promise<Flushed> {
    const attempt = () => this.#attempt(jobs, options);
    return this.#flushUntil(this.#deadline, jobs, options, attempt);
  }

  flushAtOnce(
    jobs: readonly NewJob[],
    options: FlushOptions & { readonly claim: ImmediateClaim },
    done: (flushed: Flushed | Promise<Flushed>) => void,
    begin: ((claimedAt: Date) => void) | null,
  ): boolean {
    const request = this.#request(jobs, options.notice);
    if (request === null) return false;
    const { claim } = options;
    const deadline = this.#deadline;
    const tally = this.#mayTally(jobs, claim);
    const { source, values } = claiming(request, claim, tally);
    let kept: ImmediateClaim | undefined;
    const answered = (error: unknown, rows: unknown[][]) => {
      const flushed = error === undefined ? this.#claimed(request, tally, rows) : null;
      if (flushed !== null) return done(flushed);
      const failed = () => (error === undefined ? Promise.resolve(null) : Promise.reject(error));
      done(this.#flushUntil(deadline, jobs, options, failed, kept));
    };
    const executed = (rows: unknown[][]) => {
      const { claimedAt } = flushedAndClaimed(rows);
      if (claimedAt === null) return;
      kept = { ...claim, begun: true };
      begin?.(claimedAt);
    };
    this.#options.connection.send(source, values, answered, begin === null ? null : executed);
    return true;
  }

  get #deadline(): number {
    return this.#options.clock.monotonic() + this.#options.patienceMs;
  }

  /** What the first attempt says, and then others until it is known what became of the jobs. */
  async #flushUntil(
    deadline: number,
    jobs: readonly NewJob[],
    options: FlushOptions,
    first: () => Promise<Flushed | null>,
    /** Of a run that has begun. */
    kept?: ImmediateClaim,
  ): Promise<Flushed> {
    let attempt = first;
    let wanted = options;
    const again = () => this.#attempt(jobs, wanted);
    for (let tries = 1; ; ) {
      try {
        const flushed = await attempt();
        if (flushed !== null) return flushed;
        // The producer's row is gone or ahead of us: nothing was inserted, start over under a new name.
        this.#producer = null;
      } catch (error) {
        const flushed = await this.#recover(jobs, error, tries++, deadline);
        if (flushed !== null) return flushed;
        // A worker that waited for the first try does not wait any more, unless it has begun.
        wanted = { ...options, claim: kept, handover: undefined };
      }
      attempt = again;
    }
  }

  /** Null: it can be tried again. */
  async #recover(
    jobs: readonly NewJob[],
    error: unknown,
    tries: number,
    deadline: number,
  ): Promise<Flushed | null> {
    const { clock, random, kind, connection } = this.#options;
    if (kind === "named" && isLockTimeout(error))
      throw new MillraceError("KEY_BUSY", undefined, { cause: error });
    if (!isConnectionError(error) && !didNothing(error)) throw asCoded(error);
    if (isConnectionError(error)) {
      const flushed = await this.#resolve(jobs, deadline, error);
      if (flushed !== null) return flushed;
    }
    const isLate = connection.isClosed || clock.monotonic() >= deadline;
    if (isLate || (didNothing(error) && tries >= 5)) throw unavailable(error);
    await clock.sleep(10 * 2 ** Math.min(tries, 6) * random());
    return null;
  }

  /** Null: the producer's row is gone or ahead of us, and nothing was inserted. */
  #attempt(jobs: readonly NewJob[], options: FlushOptions): Promise<Flushed | null> {
    const { claim, handover } = options;
    const request = this.#request(jobs, options.notice);
    if (request === null) return this.#register().then(() => this.#attempt(jobs, options));
    if (this.#options.kind === "named") return this.#flushNamed(request, options.atomic === true);
    if (claim === undefined && handover === undefined) return this.#flushReady(request, options);
    return this.#flushForWorker(request, options);
  }

  /** Null: this producer has no name yet. */
  #request(jobs: readonly NewJob[], notice: string | null): Flush | null {
    const { channel } = this.#options;
    const producer = this.#producer;
    if (producer === null) return null;
    return { producer, flushNo: this.#flushNo + 1, channel, notice, jobs };
  }

  async #flushReady(request: Flush, { places: placed }: FlushOptions): Promise<Flushed | null> {
    const { connection, allowed } = this.#options;
    const placing = placed === true ? "told" : "silent";
    const shape = { placing, payloadsApart: allowed.payloadsApart } as const;
    const { flushed, places } = await flushJobs(connection, request, shape);
    if (!flushed) return null;
    this.#flushed(request);
    return { ...accepted(request.jobs), places };
  }

  /** For one that waits: here, or elsewhere by its offer. */
  async #flushForWorker(
    request: Flush,
    { claim, handover, places }: FlushOptions,
  ): Promise<Flushed | null> {
    const tally = this.#mayTally(request.jobs, claim);
    const { payloadsApart } = this.#options.allowed;
    const { source, values } =
      claim === undefined
        ? handing(request, handover as Handover, { tally, payloadsApart })
        : claiming(request, claim, tally);
    const rows = await this.#options.connection.rows(source, values);
    const flushed = this.#claimed(request, tally, rows);
    return flushed && places ? { ...flushed, places: refusedPlaces(request.jobs, rows) } : flushed;
  }

  /** Is it a lone job that the producer's row can count? */
  #mayTally(jobs: readonly NewJob[], claim: ImmediateClaim | undefined): boolean {
    if (!this.#options.allowed.tallies || !isLone(jobs, claim)) return false;
    return this.#tally.takes((jobs[0] as NewJob).queueId);
  }

  #claimed(request: Flush, tally: boolean, rows: unknown[][]): Flushed | null {
    const { jobs } = request;
    const { flushedAt, claimedAt, lastSeq } = flushedAndClaimed(rows);
    if (flushedAt === null) return null;
    if (tally) this.#tally.took((jobs[0] as NewJob).queueId, flushedAt);
    this.#flushed(request);
    return { answers: acceptedOf(jobs), claimedAt, lastSeq, places: null, seen: seenBy(rows) };
  }

  #flushed({ producer, flushNo }: Flush): void {
    this.#flushNo = flushNo;
    if (this.#tally.isOver) void this.#tally.move(this.#options.connection, producer);
  }

  async #flushNamed(request: Flush, atomic: boolean): Promise<Flushed | null> {
    const { connection } = this.#options;
    const enqueue = async (run: RunStatement) => {
      const answers = await enqueueJobs(run, request);
      const refused = atomic ? answers?.find((answer) => answer instanceof Error) : undefined;
      if (refused !== undefined) throw refused;
      return answers;
    };
    const answers =
      atomic || needsTransaction(request.jobs)
        ? await connection.transaction(enqueue)
        : await enqueue((source, values) => connection.query(source, values));
    if (answers === null) return null;
    this.#flushed(request);
    return { answers, claimedAt: null, lastSeq: null, places: null };
  }

  /** Was the flush whose answer was lost committed? Asks until the database answers or patience ends. */
  async #resolve(
    jobs: readonly NewJob[],
    deadline: number,
    cause: unknown,
  ): Promise<Flushed | null> {
    const { connection, clock, random, events } = this.#options;
    const producer = this.#producer;
    if (producer === null) return null;
    // Whoever does not find out goes on under a new name: the next flush must not be taken for this one.
    this.#producer = null;
    for (;;) {
      try {
        const { committed, flushNo } = await resolved(connection, producer, this.#flushNo + 1);
        events.emit("flush.resolved", { committed, jobs: jobs.length });
        this.#tally.doubt();
        const flushed = committed ? await this.#answersOf(jobs) : null;
        this.#producer = producer;
        this.#flushNo = flushNo;
        return flushed;
      } catch (error) {
        if (!isConnectionError(error) && !didNothing(error)) throw asCoded(error);
        if (connection.isClosed || clock.monotonic() >= deadline) throw unavailable(cause);
        await clock.sleep(50 * random());
      }
    }
  }

  async #answersOf(jobs: readonly NewJob[]): Promise<Flushed> {
    const { connection, kind } = this.#options;
    if (kind === "ready") return accepted(jobs);
    const answers = await answersOfCommitted(
      (source, values) => connection.query(source, values),
      jobs,
    );
    return { answers, claimedAt: null, lastSeq: null, places: null };
  }

  async #register(): Promise<void> {
    const producer = randomUUID();
    await registerProducer(this.#options.connection, producer);
    this.#producer = producer;
    this.#flushNo = 0;
  }

  async notify(notice: string): Promise<void> {
    await sendNotice(this.#options.connection, this.#options.channel, notice);
  }

  async close(): Promise<void> {
    await this.#options.connection.close();
  }
}

/** It may be tried again as it is. */
const didNothing = (error: unknown): boolean => isRetryable(error) || isCancelled(error);

const acceptedOf = (jobs: readonly NewJob[]) =>
  jobs.map((job) => ({ id: job.id, existing: false }));

const accepted = (jobs: readonly NewJob[]): Flushed => ({
  answers: acceptedOf(jobs),
  claimedAt: null,
  lastSeq: null,
  places: null,
});

const unavailable = (cause: unknown) =>
  new MillraceError(
    "DATABASE_UNAVAILABLE",
    "PostgreSQL did not answer; whether the jobs were stored is unknown.",
    {
      cause,
    },
  );
