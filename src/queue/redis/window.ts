// The window of hints in Redis: per queue a sorted set by weight, then by seq.

import type { Events } from "../../runtime/events.ts";
import type { Hint, Taken, Window } from "../window.ts";
import { RedisConnection } from "./connection.ts";
import { loadScript, runScript, type Script } from "./scripts.ts";
import { Subscription } from "./subscription.ts";
import type { RedisTarget } from "./target.ts";

export interface RedisWindowOptions extends RedisTarget {
  /** What tells this PostgreSQL and its timeline from others. */
  readonly epoch: string;
  /** What tells this database and schema from others that use the same Redis. */
  readonly namespace: string;
  readonly answerTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly monotonic: () => number;
  readonly events?: Events | undefined;
}

const mostHints = 10_000;
const lowHints = 2_000;
const refillEveryMs = 100;
const announceEveryMs = 5;
const seqDigits = 16;

const scripts = new URL("./scripts/", import.meta.url);
const putHints = loadScript(scripts, "put-hints", ["cut"]);
const takeHints = loadScript(scripts, "take-hints");
const countHints = loadScript(scripts, "count-hints");
const serverId = loadScript(scripts, "server-id");
const refillHints = loadScript(scripts, "refill-hints", ["cut"]);

export class RedisWindow implements Window {
  readonly #options: RedisWindowOptions;
  readonly #connection: RedisConnection;
  #subscription: Subscription | null = null;
  readonly #listeners = new Set<(queueId: number) => void>();
  readonly #announcedAt = new Map<number, number>();
  /** By queue, since the queues of a cluster live on several servers. */
  readonly #epochs = new Map<number, Promise<string>>();
  #database: string;
  #closed = false;

  private constructor(options: RedisWindowOptions, connection: RedisConnection) {
    this.#options = options;
    this.#database = options.epoch;
    this.#connection = connection;
    connection.onRestored(() => this.#startAnew());
  }

  static async open(options: RedisWindowOptions): Promise<RedisWindow> {
    const connection = await RedisConnection.open({ ...options, name: "redis" });
    const window = new RedisWindow(options, connection);
    try {
      await window.#subscribe();
      return window;
    } catch (error) {
      await window.close();
      throw error;
    }
  }

  get isReady(): boolean {
    return this.#connection.isReady;
  }

  onPut(listener: (queueId: number) => void): void {
    this.#listeners.add(listener);
  }

  renew(epoch: string): void {
    if (epoch === this.#database) return;
    this.#database = epoch;
    this.#epochs.clear();
  }

  async put(hints: readonly Hint[]): Promise<readonly Hint[]> {
    const left: Hint[] = [];
    for (const [queueId, own] of byQueue(hints)) {
      const how = this.#mayAnnounce(queueId) ? "aloud" : "if empty";
      const word = await this.#run(putHints, queueId, this.#adding(queueId, how, own));
      if (word === "foreign") left.push(...own);
    }
    return left;
  }

  async take(queueIds: readonly number[], most: number): Promise<Taken> {
    const hints: Hint[] = [];
    const refill: number[] = [];
    for (const queueId of queueIds) {
      if (hints.length >= most) break;
      const limits = [most - hints.length, lowHints, refillEveryMs].map(String);
      const [word, ...rest] = (await this.#run(takeHints, queueId, limits)) as string[];
      if (word === "refill") refill.push(queueId);
      hints.push(...toHints(queueId, rest));
    }
    return { hints, refill };
  }

  async count(queueId: number): Promise<number> {
    return Number(await this.#run(countHints, queueId, []));
  }

  async refill(queueId: number, hints: readonly Hint[], more: boolean): Promise<void> {
    const how = more && hints.length > 0 ? "more" : "all";
    await this.#run(refillHints, queueId, this.#adding(queueId, how, hints));
  }

  async memory(): Promise<number> {
    const key = this.#key(0, "epoch");
    const info = String(await this.#connection.send(key, ["INFO", "memory"]));
    return Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? Number.NaN);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#subscription?.close();
    this.#connection.close();
  }

  #adding(queueId: number, how: string, hints: readonly Hint[]): string[] {
    const announcement = [channelOf(this.#options), String(queueId)];
    return [String(mostHints), ...announcement, how, ...hints.flatMap(toScored)];
  }

  /** Another server, or the same one with an old file: its windows are not to be trusted. */
  #startAnew(): void {
    this.#epochs.clear();
    // A server that was silent may have forgotten who listens; without a new one the old one stays.
    this.#subscribe().catch(() => {});
  }

  async #subscribe(): Promise<void> {
    const hear = (text: string) => this.#hear(text);
    const fresh = await Subscription.open(this.#options, channelOf(this.#options), hear);
    const old = this.#closed ? fresh : this.#subscription;
    if (!this.#closed) this.#subscription = fresh;
    old?.close();
  }

  async #run(script: Script, queueId: number, args: readonly string[]): Promise<unknown> {
    const parts = ["window", "epoch", "cut", "refill"];
    const keys = parts.map((part) => this.#key(queueId, part));
    return runScript(this.#connection, script, keys, [await this.#epochOf(queueId), ...args]);
  }

  /** The server's own id is part of it: it changes with every start and with every failover. */
  #epochOf(queueId: number): Promise<string> {
    let epoch = this.#epochs.get(queueId);
    if (epoch === undefined) {
      epoch = this.#askForEpoch(this.#key(queueId, "epoch"));
      epoch.catch(() => this.#epochs.delete(queueId));
      this.#epochs.set(queueId, epoch);
    }
    return epoch;
  }

  async #askForEpoch(key: string): Promise<string> {
    return `${this.#database}/${await runScript(this.#connection, serverId, [key], [])}`;
  }

  #key(queueId: number, part: string): string {
    return `millrace:{${this.#options.namespace}.${queueId}}:${part}`;
  }

  /** Workers that are awake go on until the window is empty; the others hear of it now and then. */
  #mayAnnounce(queueId: number): boolean {
    const now = this.#options.monotonic();
    if (now - (this.#announcedAt.get(queueId) ?? Number.NEGATIVE_INFINITY) < announceEveryMs)
      return false;
    this.#announcedAt.set(queueId, now);
    return true;
  }

  #hear(text: string): void {
    const queueId = Number(text);
    if (Number.isInteger(queueId)) for (const listener of this.#listeners) listener(queueId);
  }
}

const channelOf = ({ namespace }: RedisWindowOptions): string => `millrace:${namespace}:put`;

function byQueue(hints: readonly Hint[]): Map<number, Hint[]> {
  const queues = new Map<number, Hint[]>();
  for (const hint of hints) {
    const own = queues.get(hint.queueId);
    if (own === undefined) queues.set(hint.queueId, [hint]);
    else own.push(hint);
  }
  return queues;
}

/** A seq of fixed width sorts as a number. */
const toScored = ({ weight, seq, tid }: Hint): string[] => [
  String(weight),
  `${String(seq).padStart(seqDigits, "0")}${tid}`,
];

const isMember = /^\d+\(\d+,\d+\)$/;

function toHints(queueId: number, scored: readonly string[]): Hint[] {
  const hints: Hint[] = [];
  for (let i = 0; i + 1 < scored.length; i += 2) {
    const member = scored[i] ?? "";
    if (!isMember.test(member)) continue; // somebody else's; a hint may be lost at any time
    hints.push({
      queueId,
      weight: Number(scored[i + 1]),
      seq: Number(member.slice(0, seqDigits)),
      tid: member.slice(seqDigits),
    });
  }
  return hints;
}
