// A robot in TypeScript: leases items, renews while it works, and says how each ended. What the service
// refuses to store as a result is said as a failure, so that no item is left without an end.

import { storable } from "../../domain/describe-error.ts";
import { MillraceError } from "../../domain/errors.ts";
import { pause } from "./caller.ts";
import type { HttpClient } from "./http-client.ts";
import { type ItemEnd, isFinal, type LeasedItem, RobotLease } from "./robot-lease.ts";
import {
  BusinessException,
  type CheckedRobotOptions,
  checkRobotOptions,
  type RobotItem,
  type RobotOptions,
} from "./robot-options.ts";

const pauseAfterErrorMs = 1_000;
const waitForOthersMs = 200;
const longestMessage = 10_000;
/** So long a body is cut off by the service, which may look as if there were none. */
const hugeLength = 8 * 1024 * 1024;

export class RobotWorker {
  readonly #client: HttpClient;
  readonly #options: CheckedRobotOptions;
  readonly #stopping = new AbortController();
  readonly #unheard = new Set<RobotLease>();
  #slots: Promise<unknown> | null = null;

  constructor(client: HttpClient, options: RobotOptions) {
    this.#client = client;
    this.#options = checkRobotOptions(options);
  }

  start(): void {
    const { concurrency } = this.#options;
    this.#slots ??= Promise.all(Array.from({ length: concurrency }, () => this.#slot()));
  }

  /** Takes nothing more, and waits for what it has. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#slots;
  }

  async #slot(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        // Who has ends to say, and is not heard, asks for nothing more meanwhile.
        while (this.#unheard.size > 0 && !signal.aborted) await pause(waitForOthersMs, signal);
        const item = signal.aborted ? null : await this.#next(signal);
        if (item !== null) await this.#handle(item);
      } catch (error) {
        if (signal.aborted) return;
        this.#tell(error);
        const said = error instanceof MillraceError ? Number(error.details.retryAfterMs) || 0 : 0;
        await pause(Math.max(said, pauseAfterErrorMs), signal);
      }
    }
  }

  /** A lost answer is not asked for again: what it held comes back when its lease runs out. */
  #next(signal: AbortSignal): Promise<LeasedItem | null> {
    const { queue, leaseSeconds, waitSeconds, robotId } = this.#options;
    const { tenant } = this.#client.caller;
    const body = {
      ...{ queue_name: queue, lease_seconds: leaseSeconds, wait_seconds: waitSeconds },
      ...(robotId === undefined ? {} : { robot_id: robotId }),
      ...(tenant === undefined ? {} : { tenant_id: tenant }),
    };
    return this.#client.caller.call("POST", "/api/queue-items/next", {
      ...{ body, signal, isRepeatable: false },
    });
  }

  async #handle(leased: LeasedItem): Promise<void> {
    const { leaseSeconds } = this.#options;
    const tell = (error: unknown) => this.#tell(error);
    const lease = new RobotLease(this.#client.caller, leased, leaseSeconds, tell);
    const item = toItem(leased);
    try {
      const end = await this.#run(item, lease.signal);
      // Who was interrupted by the loss has not failed.
      if (lease.lost === null || (end.status === "DONE" && !lease.isTakenBack))
        await this.#settle(lease, end);
      else this.#lose(item, lease.lost);
    } catch (error) {
      tell(error);
      this.#lose(item, error);
    } finally {
      this.#unheard.delete(lease);
      await lease.release();
    }
  }

  /** What cannot be stored is a failure for that reason. */
  async #settle(lease: RobotLease, end: ItemEnd): Promise<void> {
    const said = {
      mostTries: Number.POSITIVE_INFINITY,
      onUnheard: () => void this.#unheard.add(lease),
    };
    const isHuge = end.status === "DONE" && lengthOf(end.result) > hugeLength;
    try {
      await lease.settle(end, isHuge ? { ...said, mostTries: 3 } : said);
    } catch (error) {
      if (isFinal(error) && !isHuge) throw error;
      this.#tell(error);
      const { code, message } = error as MillraceError;
      await lease.settle(failure(`${code}: ${message}`, false), said);
    }
  }

  async #run(item: RobotItem, signal: AbortSignal): Promise<ItemEnd> {
    try {
      const result = await this.#options.run({ item, signal });
      if (result === undefined || result === null) return { status: "DONE" };
      return lengthOf(result) === 0 ? notJson : { status: "DONE", result };
    } catch (error) {
      return failure(messageOf(error), error instanceof BusinessException);
    }
  }

  #lose(item: RobotItem, reason: unknown): void {
    harmless(() => this.#options.onLost?.(item, reason));
  }

  #tell(error: unknown): void {
    harmless(() => this.#options.onError(error));
  }
}

/** As JSON; 0: it is none. */
function lengthOf(result: unknown): number {
  try {
    return JSON.stringify(result)?.length ?? 0;
  } catch {
    return 0;
  }
}

/** Whoever is told of an error must not stop the robot by another. */
function harmless(tell: () => void): void {
  try {
    tell();
  } catch {
    // There is nobody left to be told.
  }
}

const toItem = ({
  id,
  queue_id,
  reference,
  priority,
  payload,
  retries,
}: LeasedItem): RobotItem => ({
  ...{ id, queueId: queue_id, reference, priority, payload, retries },
});

const failure = (message: string, isBusiness: boolean): ItemEnd => ({
  status: "FAILED",
  exception_type: isBusiness ? "business" : "application",
  error_message: storable(message, longestMessage),
});

const notJson = failure("RESULT_INVALID: The result cannot be stored as JSON.", false);

function messageOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    return "What was thrown has no text.";
  }
}
