import type { Place } from "../../domain/job.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/events.ts";
import type { ServiceStore } from "../service.ts";
import type {
  ClaimHint,
  Enqueued,
  LeaderSession,
  LeaseSession,
  NewJob,
  Notice,
  ProducerSession,
  ReadyPlace,
  Repair,
  Store,
  Transaction,
  UpkeepSession,
  WorkerSession,
} from "../store.ts";
import type { TriggerStore } from "../triggers.ts";
import type { NotifierSession, WebhookStore } from "../webhook.ts";
import { createBreakerStore } from "./breaker-store.ts";
import { busyConnection } from "./busy-connection.ts";
import { handedClaim, replayClaim } from "./claim.ts";
import { Habits } from "./claimed-row.ts";
import { cancelJob, deleteJob } from "./close.ts";
import { Database } from "./database.ts";
import { discardJob, listDeadLetters, reprocessJob } from "./dead-letters.ts";
import { answersOfRepeats, enqueueJobs } from "./enqueue.ts";
import { isMissingPartition } from "./failures.ts";
import { createFlowStore } from "./flow-store.ts";
import { claimLanes } from "./lane-claim.ts";
import { asLeader, fencePatienceMs, leaderSession, readLeadership } from "./leader.ts";
import { closeLease, openLease, renewLease } from "./lease.ts";
import { listen } from "./listen.ts";
import { LongPayloadReader } from "./long-payload-reader.ts";
import type { Allowed } from "./migrator.ts";
import { noticeTexts } from "./notices.ts";
import { notifierSession } from "./notifications.ts";
import { describeOffer, listOffers } from "./offers.ts";
import { listWorkers } from "./presence.ts";
import { PostgresProducer } from "./producer.ts";
import {
  attachHistory,
  configureQueue,
  countQueues,
  ensureQueues,
  listQueues,
  listTenantQueues,
  pauseQueue,
} from "./queues.ts";
import { findJobByKey, findJobs, settledOutcomes } from "./read.ts";
import { findForeign, identityOf, listReadyPlaces } from "./ready-places.ts";
import { createServiceStore } from "./service-store.ts";
import { settleOrSingly, takeTurnOrSingly } from "./settle-singly.ts";
import { rowsOf, statement } from "./statement.ts";
import { openTriggerSession, type WithPartitions } from "./trigger-session.ts";
import { triggerStore } from "./triggers.ts";
import { openUpkeep } from "./upkeep-session.ts";
import { createWebhookStore } from "./webhook-store.ts";

export interface PostgresStoreOptions {
  readonly url: string;
  readonly schema: string;
  readonly poolSize: number;
  readonly queryTimeoutMs: number;
  readonly enqueuePatienceMs: number;
  readonly keyLockTimeoutMs: number;
  readonly leaderTtlMs: number;
  readonly serverVersion: string;
  readonly allowed: Allowed;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: () => number;
}

export class PostgresStore implements Store {
  readonly serverVersion: string;
  readonly notices = noticeTexts;
  readonly webhooks: WebhookStore;
  readonly service: ServiceStore;
  readonly flow: Store["flow"];
  readonly triggers: TriggerStore;
  readonly breakers: Store["breakers"];
  readonly #options: PostgresStoreOptions;
  readonly #database: Database;

  constructor(options: PostgresStoreOptions) {
    this.#options = options;
    this.serverVersion = options.serverVersion;
    this.#database = new Database(options);
    this.webhooks = createWebhookStore(this.#database);
    this.flow = createFlowStore(this.#database);
    this.service = createServiceStore(this.#database, (body) => this.#withPartitions(body));
    this.breakers = createBreakerStore(this.#database);
    this.triggers = triggerStore(this.#database, (body) => this.#withPartitions(body));
  }

  producer(kind: "ready" | "named"): ProducerSession {
    const { enqueuePatienceMs, keyLockTimeoutMs, allowed, clock, random, events } = this.#options;
    const waitMs = kind === "named" ? keyLockTimeoutMs : undefined;
    return new PostgresProducer({
      connection: busyConnection(this.#database, `producer ${kind}`, waitMs),
      channel: this.#database.channel,
      kind,
      patienceMs: enqueuePatienceMs,
      allowed,
      clock,
      random,
      events,
    });
  }

  worker(name: string): WorkerSession {
    const connection = busyConnection(this.#database, name);
    const habits = new Habits();
    const longPayloads = new LongPayloadReader(connection);
    return {
      turn: (turn) => this.#withPartitions(() => takeTurnOrSingly(connection, turn, habits)),
      claimLanes: (request) => claimLanes(connection, request),
      replay: (claimId) => replayClaim(connection, claimId),
      handed: (claim) => handedClaim(connection, claim),
      payloads: (ids) => longPayloads.read(ids),
      settle: (settlements, worker, process) =>
        this.#withPartitions(() => settleOrSingly(connection, settlements, { worker, process })),
      close: () => connection.close(),
    };
  }

  /** Partitions are attached well ahead; a process that slept longer than that attaches them now. */
  async #withPartitions<T>(body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      if (!isMissingPartition(error)) throw error;
      await this.attachHistory();
      return body();
    }
  }

  lease(name: string): LeaseSession {
    const connection = this.#database.reserve(name, { settings: { lock_timeout: "1s" } });
    return {
      open: (lease) => openLease(connection, lease),
      renew: (...renewal) => renewLease(connection, ...renewal),
      offer: (offer) => describeOffer(connection, offer),
      end: (leaseId) => closeLease(connection, leaseId),
      close: () => connection.close(),
    };
  }

  upkeep(term?: number): UpkeepSession {
    return openUpkeep(this.#database, { term, patienceMs: this.#patienceMs });
  }

  leader(): LeaderSession {
    return leaderSession(this.#database.reserve("leader", { settings: { lock_timeout: "1s" } }));
  }

  triggerSession(options: { readonly maxAttempts: number; readonly term?: number }) {
    const withPartitions: WithPartitions = (body) => this.#withPartitions(body);
    const fence = { term: options.term, patienceMs: this.#patienceMs };
    return openTriggerSession(this.#database, fence, { ...options, withPartitions });
  }

  notifier(term?: number): NotifierSession {
    return notifierSession(this.#database, { term, patienceMs: this.#patienceMs });
  }

  leadership() {
    return readLeadership(this.#database);
  }

  asLeader<T>(term: number, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return asLeader(this.#database, term, this.#patienceMs, (query) =>
      work({ query: (text, values) => query(statement("", text), values) }),
    );
  }

  workers() {
    return listWorkers(this.#database);
  }

  get #patienceMs(): number {
    return fencePatienceMs(this.#options.leaderTtlMs);
  }

  listen(hear: (notice: Notice) => void) {
    return listen(this.#database, hear, this.#options);
  }

  offers() {
    return listOffers(this.#database);
  }

  async enqueueIn(
    tx: Transaction,
    jobs: readonly NewJob[],
    notice: string,
  ): Promise<(Enqueued | Error)[]> {
    const run = async (source: { name: string; text: string }, values: unknown[]) => {
      const answer = await tx.query(this.#database.renderer.render(source).text, values);
      return rowsOf(answer);
    };
    const request = {
      flushNo: null,
      producer: null,
      channel: this.#database.channel,
      notice,
      jobs,
    };
    return (await enqueueJobs(run, request)) ?? [];
  }

  readyPlaces(
    queueId: number,
    limit: number,
    hints: readonly ClaimHint[],
    weights: { readonly from: number; readonly to: number },
  ): Promise<ReadyPlace[]> {
    return listReadyPlaces(this.#database, queueId, limit, hints, weights);
  }

  repeats(jobs: readonly NewJob[]): Promise<(Enqueued | Error)[] | null> {
    return answersOfRepeats((source, values) => this.#database.query(source, values), jobs);
  }

  foreignPlaces(places: readonly Place[], types: readonly string[] | null): Promise<ReadyPlace[]> {
    return findForeign(this.#database, places, types);
  }

  identity(): Promise<{ namespace: string; epoch: string }> {
    return identityOf(this.#database);
  }

  find(ids: readonly string[]) {
    return findJobs(this.#database, ids);
  }

  findByKey(tenant: string, key: string) {
    return findJobByKey(this.#database, tenant, key);
  }

  settledOutcomes(tokens: Parameters<Store["settledOutcomes"]>[0]) {
    return settledOutcomes(this.#database, tokens);
  }

  cancel(id: string, reason: string | null) {
    const stateOf = async (job: string) => (await this.find([job]))[0]?.state ?? null;
    return cancelJob(this.#database, id, reason, stateOf);
  }

  delete(id: string, repair: Repair) {
    return deleteJob(this.#database, id, repair.reason, repair.actor);
  }

  deadLetters(filter: Parameters<Store["deadLetters"]>[0], limit: number) {
    return listDeadLetters(this.#database, filter, limit);
  }

  reprocess(id: string, newId: string, repair: Repair) {
    return reprocessJob(this.#database, id, newId, repair);
  }

  discard(id: string, repair: Repair) {
    return discardJob(this.#database, id, repair);
  }

  ensureQueues(tenant: string, names: readonly string[]) {
    return ensureQueues(this.#database, tenant, names);
  }

  tenantQueues(names: readonly string[]) {
    return listTenantQueues(this.#database, names);
  }

  queues() {
    return listQueues(this.#database);
  }

  configureQueue(tenant: string, name: string, settings: Parameters<Store["configureQueue"]>[2]) {
    return configureQueue(this.#database, tenant, name, settings);
  }

  pauseQueue(tenant: string, name: string, paused: boolean) {
    return pauseQueue(this.#database, tenant, name, paused);
  }

  counts(queueIds: readonly number[]) {
    return countQueues(this.#database, queueIds);
  }

  attachHistory() {
    return attachHistory(this.#database);
  }

  /** For a server that does not answer: whatever is under way fails. */
  readonly abandon = () => this.#database.abandon();
  readonly close = () => this.#database.close();
}
