// One connection to Redis that comes back by itself. While it is gone, or the server silent, a command
// fails soon with REDIS_UNAVAILABLE; whether such a command took effect is then unknown.

import { setTimeout as delay } from "node:timers/promises";
import { MillraceError } from "../../domain/errors.ts";
import type { Events } from "../../runtime/events.ts";
import { Silence, withDeadline } from "./deadline.ts";
import { createDriver, type Driver } from "./driver.ts";
import type { RedisTarget } from "./target.ts";

export interface ConnectionOptions extends RedisTarget {
  /** What events call it. */
  readonly name: string;
  readonly connectTimeoutMs: number;
  /** How long to wait for an answer. */
  readonly answerTimeoutMs: number;
  readonly events?: Events | undefined;
}

/** Answers of a server that is there and cannot serve. */
const cannotServe =
  /^(OOM|LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|MISCONF|NOREPLICAS|NOAUTH|NOPERM|WRONGPASS)\b/;

const notAdmitted = /^(NOAUTH|WRONGPASS|NOPERM)\b/;

const longestPauseMs = 1_000;

export class RedisConnection {
  readonly #options: ConnectionOptions;
  readonly #driver: Driver;
  readonly #restored = new Set<() => void>();
  #state: "connecting" | "ready" | "lost" | "closed" = "connecting";
  #isWanted = () => true;
  #renewing = false;

  private constructor(options: ConnectionOptions, driver: Driver) {
    this.#options = options;
    this.#driver = driver;
    driver.onReady(() => this.#onReady());
    driver.onError((error) => this.#onLost(error));
  }

  static async open(options: ConnectionOptions): Promise<RedisConnection> {
    let connection: RedisConnection | undefined;
    const driver = await createDriver({
      ...options,
      // The first connecting is tried once; whoever asked decides whether to ask again.
      reconnect: (attempts) => connection?.pauseBefore(attempts) ?? false,
    });
    const opened = new RedisConnection(options, driver);
    try {
      await withDeadline(driver.connect(), options.connectTimeoutMs);
    } catch (error) {
      opened.close();
      throw unavailable(error);
    }
    opened.#state = "ready";
    connection = opened;
    return opened;
  }

  get isReady(): boolean {
    return this.#state === "ready";
  }

  /** `answerMs` is how long the server itself may take to answer: commands that block need it. */
  async send(key: string, args: string[], answerMs = 0): Promise<unknown> {
    if (this.#state === "closed") throw unavailable(new Error("the connection was closed"));
    try {
      const limitMs = this.#options.answerTimeoutMs + answerMs;
      const answer = await withDeadline(this.#driver.send(key, args), limitMs);
      this.#onReady(); // a Cluster's client tells of its nodes, not of the way to this key
      return answer;
    } catch (error) {
      if (error instanceof Silence) void this.#startAnew(error);
      throw isOutage(error) ? unavailable(error) : error;
    }
  }

  async ping(key: string, timeoutMs: number): Promise<void> {
    try {
      await withDeadline(this.#driver.send(key, ["EXISTS", key]), timeoutMs);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** A server that wants a password lets anybody connect, and refuses everything after that. */
  async beAdmitted(key: string): Promise<void> {
    try {
      await this.ping(key, this.#options.connectTimeoutMs);
    } catch (error) {
      // Whatever else it cannot do now, it may be able to do later.
      if (!notAdmitted.test(causeOf(error))) return;
      this.close();
      throw error;
    }
  }

  onRestored(listener: () => void): void {
    this.#restored.add(listener);
  }

  /** No longer keeps the process alive, and once lost comes back only while it is wanted. */
  keepOnlyWhile(isWanted: () => boolean): void {
    this.#isWanted = isWanted;
    this.#driver.unref();
  }

  close(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#destroy();
  }

  private pauseBefore(attempts: number): number | false {
    if (this.#state === "closed" || !this.#isWanted()) return false;
    return Math.min(50 * 2 ** attempts, longestPauseMs);
  }

  #onReady(): void {
    // The client does not notice that it was ended while its socket was being opened.
    if (this.#state === "closed") this.#destroy();
    if (this.#state !== "lost") return;
    this.#state = "ready";
    this.#options.events?.emit("connection.restored", { connection: this.#options.name });
    for (const listener of this.#restored) listener();
  }

  #onLost(error: unknown): void {
    if (this.#state !== "ready") return;
    this.#state = "lost";
    this.#options.events?.emit("connection.lost", { connection: this.#options.name, error });
  }

  /** TCP takes a quarter of an hour to notice that the other side has vanished. */
  async #startAnew(error: unknown): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    this.#onLost(error);
    this.#destroy();
    for (let attempts = 0; ; attempts++) {
      const pauseMs = this.pauseBefore(attempts);
      if (pauseMs === false) break;
      try {
        // A stopped server accepts connections, and never says hello.
        await withDeadline(this.#driver.connect(), this.#options.connectTimeoutMs);
        this.#onReady();
        break;
      } catch {
        this.#destroy();
        await delay(pauseMs);
      }
    }
    this.#renewing = false;
  }

  #destroy(): void {
    try {
      this.#driver.destroy();
    } catch {
      // It was not open.
    }
  }
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const causeOf = (error: unknown): string => textOf(error instanceof Error ? error.cause : error);

export function isUnavailable(error: unknown): boolean {
  return error instanceof MillraceError && error.code === "REDIS_UNAVAILABLE";
}

function unavailable(cause: unknown): MillraceError {
  if (cause instanceof MillraceError) return cause;
  const reason = textOf(cause);
  const message = notAdmitted.test(reason)
    ? `Redis does not admit us: ${reason} Give user and password in the URL, as in redis://user:password@host.`
    : `Redis ${cannotServe.test(reason) ? "cannot serve" : "cannot be reached"}: ${reason}`;
  return new MillraceError("REDIS_UNAVAILABLE", message, { cause });
}

/** What the server refuses for good reasons (a wrong type, an unknown command) is no outage. */
function isOutage(error: unknown): boolean {
  if (error instanceof TypeError) return false; // ours: it never left this process
  const isReply = error instanceof Error && /^[A-Z]+ /.test(error.message);
  return !isReply || cannotServe.test(error.message);
}
