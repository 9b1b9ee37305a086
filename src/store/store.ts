// What the rest of Millrace may ask of its store. Domain words only; no driver type crosses it.

import type { Job, JobMeta, Place } from "../domain/job.ts";
import type { RunOutcome } from "../domain/timeline.ts";
import type { Token } from "../domain/token.ts";
import type { BreakerStore } from "./breaker.ts";
import type { Claimed, ClaimHint } from "./claimed.ts";
import type { FlowStore, LaneClaimed, LaneClaimRequest } from "./flow.ts";
import type { Label } from "./label.ts";
import type { LeaderSession, Leadership, WorkerPresence } from "./leadership.ts";
import type { LeaseSession } from "./lease.ts";
import type { HandedClaim, Handover, Listener, Offer, Seen } from "./offer.ts";
import type { Queue, QueueCounts, QueueSettings } from "./queue.ts";
import type { ServiceStore } from "./service.ts";
import type { Settled, Settlement } from "./settlement.ts";
import type { TriggerSession, TriggerStore } from "./triggers.ts";
import type { UpkeepSession } from "./upkeep.ts";
import type { NotifierSession, WebhookStore } from "./webhook.ts";

export type { Claimed, ClaimHint } from "./claimed.ts";
export type { LeaderSession, Leadership, WorkerPresence } from "./leadership.ts";
export type { LeaseMark, LeaseSession, Renewal } from "./lease.ts";
export type { FreshJobs, HandedClaim, Handover, Listener, Offer, Seen } from "./offer.ts";
export type { Queue, QueueCounts, QueueSettings } from "./queue.ts";
export type { Settled, Settlement } from "./settlement.ts";
export type { LapsedJob, LapsedLease, LeaseCensus, Promoted, UpkeepSession } from "./upkeep.ts";

/** Anything that runs SQL inside the caller's own transaction. */
export interface Transaction {
  query(text: string, values: unknown[]): PromiseLike<unknown>;
}

export interface NewJob {
  readonly id: string;
  readonly type: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly weight: number;
  readonly maxAttempts: number;
  /** JSON text. */
  readonly payload: string;
  readonly delayMs?: number | undefined;
  readonly expiresInMs?: number | undefined;
  readonly maxRuntimeMs?: number | undefined;
  readonly correlationId?: string | undefined;
  readonly key?: string | undefined;
  /** Hex; what "the same request" means for an idempotency key. */
  readonly requestHash?: string | undefined;
  readonly reference?: string | undefined;
  readonly uniqueReference?: boolean | undefined;
  readonly waitForCommit?: boolean | undefined;
  readonly meta?: JobMeta | undefined;
  /** Given in controlled queues only; their jobs are neither hinted nor claimed as they are stored. */
  readonly tenantSlot?: number | undefined;
  readonly lane?: number | undefined;
  readonly labels?: readonly Label[] | undefined;
}

export interface Enqueued {
  readonly id: string;
  /** True when this very request had been made before: the id is the old job's. */
  readonly existing: boolean;
}

export interface ClaimRequest {
  readonly claimId: string;
  readonly leaseId: string;
  readonly limit: number;
  /** Only these types; null: every type. */
  readonly types: readonly string[] | null;
  readonly queueIds: readonly number[];
  /** null: look from the head of each queue. */
  readonly hints: readonly ClaimHint[] | null;
  /** Only these jobs, wherever hints would look. */
  readonly places?: readonly Place[] | undefined;
  /** May one suspect (a job that was there when a process died) be among them? */
  readonly suspect: boolean;
}

export interface Completion {
  readonly id: string;
  readonly queueId: number;
  /** Known of jobs that were claimed; others are found by id. */
  readonly place?: Place | undefined;
  readonly token: Token;
  /** JSON text, or undefined for none. */
  readonly result: string | undefined;
  /** It counts for its tenant, and is counted out. */
  readonly counted?: boolean | undefined;
}

/** One round trip of a worker: what it has finished, and what it wants next. */
export interface Turn {
  readonly worker: string;
  readonly process: string;
  readonly completions: readonly Completion[];
  readonly finishedClaims: readonly string[];
  readonly claim: ClaimRequest | null;
}

export interface Turned extends Claimed {
  /** The completions that took effect; null: all of them. Others were superseded, or are repeats. */
  readonly completed: ReadonlySet<string> | null;
}

export type CancelResult = "cancelled" | "requested" | "ended" | "unknown";

export interface DeadLetterFilter {
  readonly ids?: readonly string[];
  readonly queue?: string;
  readonly tenant?: string;
  readonly fingerprint?: string;
  readonly type?: string;
}

export interface Repair {
  readonly reason: string;
  readonly actor: string;
}

export interface Reprocessed {
  readonly id: string;
  readonly idempotencyKey: string;
}

/** Claims a flush's first jobs while inserting them, for a local worker that waits for just these. */
export interface ImmediateClaim {
  /** Best the first job's id: a lone job's flush says it once. */
  readonly claimId: string;
  readonly leaseId: string;
  readonly count: number;
  readonly hints: readonly ClaimHint[];
  readonly queueIds: readonly number[];
  /** The run of a lone job has begun: it is stored as claimed, whatever is ready before it. */
  readonly begun?: boolean;
}

export interface FlushOptions {
  /** What to tell listeners with the commit. */
  readonly notice: string | null;
  readonly claim?: ImmediateClaim | undefined;
  /** Without it, or when it is refused, the notice is told. */
  readonly handover?: Handover | undefined;
  /** All of these jobs or none: the first refusal is thrown. */
  readonly atomic?: boolean;
  /** Tell where the jobs are, for hints. */
  readonly places?: boolean;
}

/** Where a ready job is. A hint: by the time somebody looks, it may be gone. */
export interface ReadyPlace extends Place {
  readonly queueId: number;
  readonly weight: number;
}

export interface Flushed {
  /** One answer per job, in order. */
  readonly answers: readonly (Enqueued | Error)[];
  /** When the immediate claim or the handover was made; null: it was not. */
  readonly claimedAt: Date | null;
  readonly lastSeq: number | null;
  /** One per job, in order, if they were asked for and are known. */
  readonly places: readonly ReadyPlace[] | null;
  /** Of a handover of several: what it has shown of its worker. */
  readonly seen?: Seen | undefined;
}

/** A producer's own connection. One flush at a time. */
export interface ProducerSession {
  /** Resolves after the commit. An ambiguous commit is resolved, never guessed. */
  flush(jobs: readonly NewJob[], options: FlushOptions): Promise<Flushed>;
  /**
   * The same for a worker here that waits, with no promise on the way; false: this session is not ready. `begin` is
   * told once, before `done`, that all is done but the commit: the job is that claim's own then, or `done` fails.
   */
  flushAtOnce(
    jobs: readonly NewJob[],
    options: FlushOptions & { readonly claim: ImmediateClaim },
    done: (flushed: Flushed | Promise<Flushed>) => void,
    begin: ((claimedAt: Date) => void) | null,
  ): boolean;
  notify(notice: string): Promise<void>;
  close(): Promise<void>;
}

/** A worker's own connection. One call at a time. */
export interface WorkerSession {
  turn(turn: Turn): Promise<Turned>;
  /** A claim in a controlled queue: never together with a settle. */
  claimLanes(request: LaneClaimRequest): Promise<LaneClaimed>;
  replay(claimId: string): Promise<Claimed>;
  /** Finds nothing unless the claim was made for that lease. */
  handed(claim: HandedClaim): Promise<Claimed>;
  /** Texts of long payloads, in the order of their ids; those that are not there are left out. */
  payloads(ids: readonly string[]): Promise<string[]>;
  settle(settlements: readonly Settlement[], worker: string, process: string): Promise<Settled>;
  close(): Promise<void>;
}

export type Notice =
  | { readonly kind: "ready"; readonly queueIds: readonly number[]; readonly late: boolean }
  | { readonly kind: "due"; readonly delayMs: number }
  | { readonly kind: "cancel"; readonly leaseId: string }
  | { readonly kind: "handed"; readonly claim: HandedClaim }
  | { readonly kind: "breaker"; readonly id: number }
  | { readonly kind: "queues" }
  | { readonly kind: "notifications" }
  | { readonly kind: "triggers" };

export interface NoticeTexts {
  ready(queueIds: Iterable<number>): string;
  /** Ready, and possibly with an older place in the order than what was claimed meanwhile. */
  late(queueIds: Iterable<number>): string;
  due(delayMs: number): string;
}

export interface Store {
  readonly serverVersion: string;
  readonly notices: NoticeTexts;
  readonly webhooks: WebhookStore;
  readonly flow: FlowStore;
  readonly service: ServiceStore;
  readonly breakers: BreakerStore;
  producer(kind: "ready" | "named"): ProducerSession;
  worker(name: string): WorkerSession;
  lease(name: string): LeaseSession;
  readonly triggers: TriggerStore;
  /** With a term, each of its writes is a leader's. */
  triggerSession(options: { readonly maxAttempts: number; readonly term?: number }): TriggerSession;
  /** With a term, each of its writes is a leader's: NOT_LEADER once that term is superseded. */
  upkeep(term?: number): UpkeepSession;
  /** The same for the notifier. Without a term it uses the pool. */
  notifier(term?: number): NotifierSession;
  leader(): LeaderSession;
  leadership(): Promise<Leadership>;
  /**
   * One transaction that begins by locking the leader row with this term: NOT_LEADER if it has been
   * superseded, and until it ends nobody else is elected. Never call anything but PostgreSQL in it.
   */
  asLeader<T>(term: number, work: (tx: Transaction) => Promise<T>): Promise<T>;
  workers(): Promise<WorkerPresence[]>;
  listen(hear: (notice: Notice) => void): Promise<Listener>;
  /** Those that stand just now. */
  offers(): Promise<Offer[]>;
  enqueueIn(
    tx: Transaction,
    jobs: readonly NewJob[],
    notice: string,
  ): Promise<(Enqueued | Error)[]>;
  /** What is ready in a queue, in claim order; behind these hints, if there are any for it. */
  readyPlaces(
    queueId: number,
    limit: number,
    hints: readonly ClaimHint[],
    weights: { readonly from: number; readonly to: number },
  ): Promise<ReadyPlace[]>;
  /** Which of these jobs are ready, but not for a worker of these types: others may take them. */
  foreignPlaces(places: readonly Place[], types: readonly string[] | null): Promise<ReadyPlace[]>;
  /** What tells this database from others that share a Redis, and its present from its past. */
  identity(): Promise<{ namespace: string; epoch: string }>;
  /** The answers to requests that were all made before; null when one of them is new. */
  repeats(jobs: readonly NewJob[]): Promise<(Enqueued | Error)[] | null>;
  find(ids: readonly string[]): Promise<Job[]>;
  findByKey(tenant: string, key: string): Promise<string | null>;
  settledOutcomes(
    tokens: readonly { id: string; token: Token }[],
  ): Promise<Map<string, RunOutcome>>;
  cancel(id: string, reason: string | null): Promise<CancelResult>;
  delete(id: string, repair: Repair): Promise<boolean>;
  deadLetters(filter: DeadLetterFilter, limit: number): Promise<Job[]>;
  reprocess(id: string, newId: string, repair: Repair): Promise<Reprocessed>;
  discard(id: string, repair: Repair): Promise<void>;
  ensureQueues(tenant: string, names: readonly string[]): Promise<Queue[]>;
  queues(): Promise<Queue[]>;
  /** Of all tenants, those that have one of these names; not the shared ones. */
  tenantQueues(names: readonly string[]): Promise<Queue[]>;
  configureQueue(tenant: string, name: string, settings: QueueSettings): Promise<Queue>;
  pauseQueue(tenant: string, name: string, paused: boolean): Promise<Queue>;
  counts(queueIds: readonly number[]): Promise<Map<number, QueueCounts>>;
  attachHistory(): Promise<number>;
  close(): Promise<void>;
}
