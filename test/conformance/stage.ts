// What a conformance test stands on: one store with all its sessions, and short words for common acts.

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { ClaimedJob, Job, Place } from "../../src/domain/job.ts";
import type { Outcome } from "../../src/domain/outcome.ts";
import { appendEntry } from "../../src/domain/timeline.ts";
import { tokenText } from "../../src/domain/token.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type {
  ClaimHint,
  ClaimRequest,
  Completion,
  Enqueued,
  LeaseSession,
  NewJob,
  ProducerSession,
  Settlement,
  Store,
  UpkeepSession,
  WorkerSession,
} from "../../src/store/store.ts";

/** A store to test, and a way to look at and to age what it keeps. */
export interface OpenStore {
  readonly store: Store;
  sql<R extends Record<string, unknown>>(text: string, values?: unknown[]): Promise<R[]>;
  /** A connection of the caller's own, for transactions. */
  session(): Promise<Session>;
  close(): Promise<void>;
}

export interface Session {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  close(): Promise<void>;
}

export interface ClaimOptions {
  readonly leaseId?: string;
  readonly claimId?: string;
  readonly limit?: number;
  readonly types?: readonly string[] | null;
  readonly hints?: readonly ClaimHint[] | null;
  readonly places?: readonly Place[];
  readonly suspect?: boolean;
}

/** What a worker says of a job it has finished; without a place the store finds it by id. */
export type Completable = Pick<Claim, "id" | "token" | "queueId" | "place">;

export const completionOf = (job: Completable, result?: string): Completion => ({
  id: job.id,
  token: job.token,
  queueId: job.queueId,
  place: job.place,
  result,
});

export const withoutPlace = (job: Completable): Completable => ({
  id: job.id,
  token: job.token,
  queueId: job.queueId,
});

export type Claim = ClaimedJob & { readonly weight: number; readonly seq: number };
export type Ending = Settlement["outcome"];

export const failure = { class: "retryable", fingerprint: "f00d", message: "broken" } as const;
export const retried = (delayMs = 0): Ending => ({ kind: "retried", delayMs, error: failure });
export const snoozed = (delayMs = 0): Ending => ({ kind: "snoozed", delayMs, reason: "not yet" });
export const dead: Ending = { kind: "dead", error: { ...failure, stack: "at x" } };
export const released: Ending = { kind: "released" };
export const cancelled: Ending = { kind: "cancelled" };

/** Registers tests; the stage is there as soon as they run. */
export type Topic = (stage: () => Stage) => void;

let queues = 0;

export class Stage {
  readonly store: Store;
  readonly sql: OpenStore["sql"];
  readonly ready: ProducerSession;
  readonly named: ProducerSession;
  readonly worker: WorkerSession;
  readonly lease: LeaseSession;
  readonly upkeep: UpkeepSession;
  readonly process = randomUUID();
  readonly #opened: OpenStore;

  constructor(opened: OpenStore) {
    this.#opened = opened;
    this.store = opened.store;
    this.sql = opened.sql;
    this.ready = opened.store.producer("ready");
    this.named = opened.store.producer("named");
    this.worker = opened.store.worker("worker");
    this.lease = opened.store.lease("lease");
    this.upkeep = opened.store.upkeep();
  }

  async close(): Promise<void> {
    const sessions = [this.ready, this.named, this.worker, this.lease, this.upkeep];
    for (const session of sessions) await session.close();
    await this.#opened.close();
  }

  session(): Promise<Session> {
    return this.#opened.session();
  }

  /** For what needs connections of its own, below the contract. */
  async url(): Promise<string> {
    const [row] = await this.sql<{ url: string }>(
      "select format('postgres://postgres@127.0.0.1:%s/%s', inet_server_port(), current_database()) as url",
    );
    return row?.url ?? "";
  }

  /** A queue nobody else uses. */
  async queue(): Promise<number> {
    const [queue] = await this.store.ensureQueues("", [`queue-${++queues}`]);
    return queue?.id ?? 0;
  }

  job(queueId: number, options: Partial<NewJob> = {}): NewJob {
    return {
      id: uuidv7(),
      type: "work",
      queueId,
      tenant: "acme",
      weight: 5,
      maxAttempts: 5,
      payload: '{"n":1}',
      ...options,
    };
  }

  jobs(queueId: number, count: number, options: Partial<NewJob> = {}): NewJob[] {
    return Array.from({ length: count }, () => this.job(queueId, options));
  }

  /** Enqueues without names, each call as one flush; answers the ids. */
  async put(...jobs: NewJob[]): Promise<string[]> {
    const kind = jobs.some((job) => job.delayMs !== undefined) ? this.named : this.ready;
    const { answers } = await kind.flush(jobs, { notice: null });
    return answers.map(idOf);
  }

  async openLease(leaseMs = 600_000): Promise<string> {
    const leaseId = randomUUID();
    await this.lease.open({ leaseId, worker: "worker", leaseMs, info: {} });
    return leaseId;
  }

  /** As if the holder had not renewed in time. */
  async endLease(leaseId: string): Promise<void> {
    await this.sql("update millrace.lease set expires_at = now() - interval '1 s' where id = $1", [
      leaseId,
    ]);
  }

  async request(queueIds: number | number[], options: ClaimOptions = {}): Promise<ClaimRequest> {
    return {
      claimId: options.claimId ?? randomUUID(),
      leaseId: options.leaseId ?? (await this.openLease()),
      limit: options.limit ?? 100,
      types: options.types ?? null,
      queueIds: [queueIds].flat(),
      hints: options.hints ?? null,
      places: options.places,
      suspect: options.suspect ?? true,
    };
  }

  async claim(queueIds: number | number[], options: ClaimOptions = {}): Promise<Claim[]> {
    const claim = await this.request(queueIds, options);
    const turn = { worker: "worker", process: this.process, completions: [], finishedClaims: [] };
    return [...(await this.worker.turn({ ...turn, claim })).jobs];
  }

  /** One job, put and claimed. */
  async running(queueId: number, options: Partial<NewJob> = {}, claim: ClaimOptions = {}) {
    await this.put(this.job(queueId, options));
    const [job] = await this.claim(queueId, { limit: 1, ...claim });
    if (job === undefined) throw new Error("nothing was claimed");
    return job;
  }

  /** How many of these completions took effect. */
  async complete(jobs: readonly Completable[], result?: string): Promise<number> {
    const turned = await this.worker.turn({
      worker: "worker",
      process: this.process,
      completions: jobs.map((job) => completionOf(job, result)),
      finishedClaims: [],
      claim: null,
    });
    return turned.completed?.size ?? jobs.length;
  }

  /** What became of the job, or undefined when the settle was refused. */
  async settle(job: Settleable, outcome: Ending, charged = false): Promise<string | undefined> {
    const settlement = toSettlement(job, outcome, charged);
    const settled = await this.worker.settle([settlement], "worker", this.process);
    return settled.get(job.id);
  }

  async settleLapsed(job: Settleable, leaseId: string | null, outcome: Ending, charged = false) {
    const settlement = toSettlement(job, outcome, charged);
    const settled = await this.upkeep.settleLapsed(leaseId, [settlement], this.process);
    return settled.get(job.id);
  }

  async find(id: string): Promise<Job> {
    const [job, ...others] = await this.store.find([id]);
    if (job === undefined) throw new Error(`no job ${id}`);
    expect(others).toEqual([]);
    return job;
  }

  async stateOf(id: string): Promise<string> {
    return (await this.find(id)).state;
  }

  async promoteAll(): Promise<number> {
    return (await this.upkeep.promote(1_000)).promoted;
  }
}

export type Settleable = Pick<Claim, "id" | "token" | "attempt" | "timeline" | "queueId" | "place">;

export function toSettlement(job: Settleable, outcome: Ending, charged = false): Settlement {
  const at = new Date().toISOString();
  const entry = {
    token: tokenText(job.token),
    attempt: job.attempt,
    worker: "worker",
    startedAt: at,
    endedAt: at,
    outcome: outcome.kind satisfies Outcome["kind"],
  };
  const timeline = appendEntry(job.timeline, entry);
  return { id: job.id, token: job.token, outcome, timeline, charged };
}

const idOf = (answer: Enqueued | Error): string => {
  if (answer instanceof Error) throw answer;
  return answer.id;
};

export const ids = (jobs: readonly { readonly id: string }[]): string[] => jobs.map(({ id }) => id);
