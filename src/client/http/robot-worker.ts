// A robot in TypeScript: leases items, renews while it works, and says how each ended. What it cannot
// hold any more it gives up: the run's signal aborts, and nothing is said about the item.

import { MillraceError } from "../../domain/errors.ts";
import { pause } from "./caller.ts";
import type { HttpClient } from "./http-client.ts";

export interface RobotItem {
  readonly id: string;
  readonly queueId: number;
  readonly reference: string | null;
  readonly priority: number;
  readonly payload: unknown;
  /** How many runs it has had before this one. */
  readonly retries: number;
}

export interface RobotRun {
  readonly item: RobotItem;
  /** Aborts when the lease is lost or somebody wants the item cancelled. */
  readonly signal: AbortSignal;
}

export interface RobotOptions {
  readonly queue: string;
  /** What it returns is the item's result; what it throws, an application exception. */
  readonly run: (run: RobotRun) => unknown;
  readonly concurrency?: number;
  readonly leaseSeconds?: number;
  readonly waitSeconds?: number;
  readonly robotId?: string;
  /** Of the robot itself: a service that does not answer, a lease that was lost. */
  readonly onError?: (error: unknown) => void;
}

/** Throw this where trying again is no use. */
export class BusinessException extends Error {
  override readonly name = "BusinessException";
}

interface LeasedItem {
  readonly id: string;
  readonly token: string;
  readonly queue_id: number;
  readonly reference: string | null;
  readonly priority: number;
  readonly payload: unknown;
  readonly retries: number;
}

const pauseAfterErrorMs = 1_000;

export class RobotWorker {
  readonly #client: HttpClient;
  readonly #options: Required<Omit<RobotOptions, "robotId">> & { readonly robotId?: string };
  readonly #stopping = new AbortController();
  #slots: Promise<unknown> | null = null;

  constructor(client: HttpClient, options: RobotOptions) {
    this.#client = client;
    this.#options = {
      ...{ concurrency: 1, leaseSeconds: 60, waitSeconds: 20, onError: () => {} },
      ...options,
    };
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
        const item = await this.#next(signal);
        if (item !== null) await this.#handle(item);
      } catch (error) {
        if (signal.aborted) return;
        this.#options.onError(error);
        await pause(pauseAfterErrorMs, signal);
      }
    }
  }

  /** A lost answer is not asked for again: what it held comes back when its lease runs out. */
  #next(signal: AbortSignal): Promise<LeasedItem | null> {
    const { queue, leaseSeconds, waitSeconds, robotId } = this.#options;
    const body = {
      ...{ queue_name: queue, lease_seconds: leaseSeconds, wait_seconds: waitSeconds },
      ...(robotId === undefined ? {} : { robot_id: robotId }),
      ...(this.#client.caller.tenant === undefined
        ? {}
        : { tenant_id: this.#client.caller.tenant }),
    };
    return this.#client.caller.call("POST", "/api/queue-items/next", {
      ...{ body, signal, isRepeatable: false },
    });
  }

  async #handle(item: LeasedItem): Promise<void> {
    const lost = new AbortController();
    const done = new AbortController();
    const renewing = this.#renew(item, lost, done.signal);
    const end = await this.#run(item, lost.signal);
    done.abort();
    await renewing;
    if (lost.signal.aborted) return;
    const path = `/api/queue-items/${item.id}`;
    await this.#client.caller.call("PUT", path, { body: { ...end, token: item.token } });
  }

  async #run(item: LeasedItem, signal: AbortSignal): Promise<object> {
    const { id, reference, priority, payload, retries } = item;
    const run = {
      item: { id, queueId: item.queue_id, reference, priority, payload, retries },
      signal,
    };
    try {
      const result = await this.#options.run(run);
      return { status: "DONE", ...(result === undefined ? {} : { result }) };
    } catch (error) {
      const isBusiness = error instanceof BusinessException;
      return {
        status: "FAILED",
        exception_type: isBusiness ? "business" : "application",
        error_message: (error instanceof Error ? error.message : String(error)).slice(0, 10_000),
      };
    }
  }

  /** Three times per lease, until the run is over or the lease is. */
  async #renew(item: LeasedItem, lost: AbortController, done: AbortSignal): Promise<void> {
    const { leaseSeconds, onError } = this.#options;
    const body = { token: item.token, lease_seconds: leaseSeconds };
    const path = `/api/queue-items/${item.id}/renew`;
    for (;;) {
      await pause((leaseSeconds * 1_000) / 3, done);
      if (done.aborted) return;
      try {
        const answer = await this.#client.caller.call<{ cancel_requested: boolean }>("POST", path, {
          body,
        });
        if (answer.cancel_requested) lost.abort(new Error("Somebody wants the item cancelled."));
      } catch (error) {
        onError(error);
        if (error instanceof MillraceError && error.code !== "SERVICE_UNAVAILABLE")
          lost.abort(error);
      }
    }
  }
}
