// One item in a robot's hands. It is renewed until it is settled, and what is to be said about it is said
// until the service has heard it or the lease is lost. By our own clock a lease may be over while nobody
// has taken the item back yet: only the service knows, so that what was done is offered a while longer.

import { MillraceError } from "../../domain/errors.ts";
import { type HttpCaller, pause } from "./caller.ts";

export interface LeasedItem {
  readonly id: string;
  readonly token: string;
  readonly queue_id: number;
  readonly reference: string | null;
  readonly priority: number;
  readonly payload: unknown;
  readonly retries: number;
}

export type ItemEnd =
  | { readonly status: "DONE"; readonly result?: unknown }
  | {
      readonly status: "FAILED";
      readonly exception_type: "application" | "business";
      readonly error_message: string;
    };

interface SettleOptions {
  readonly mostTries: number;
  /** Told each time that it was said in vain. */
  readonly onUnheard: () => void;
}

const takenBack = new Set(["STALE_TOKEN", "ILLEGAL_TRANSITION", "ITEM_NOT_FOUND"]);
const keyRefused = new Set(["UNAUTHENTICATED", "FORBIDDEN"]);
const isOneOf = (codes: ReadonlySet<string>, error: unknown): error is MillraceError =>
  error instanceof MillraceError && codes.has(error.code);

const firstPauseMs = 200;
const longestWaitMs = 10_000;

export class RobotLease {
  readonly #caller: HttpCaller;
  readonly #item: LeasedItem;
  readonly #leaseMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #run = new AbortController();
  readonly #released = new AbortController();
  readonly #renewing: Promise<void>;
  /** By our own clock. */
  #until: number;
  #failures = 0;
  #isSettling = false;
  #lost: unknown = null;

  constructor(
    caller: HttpCaller,
    item: LeasedItem,
    leaseSeconds: number,
    onError: (error: unknown) => void,
  ) {
    this.#caller = caller;
    this.#item = item;
    this.#leaseMs = leaseSeconds * 1_000;
    this.#onError = onError;
    this.#until = performance.now() + this.#leaseMs;
    this.#renewing = this.#keep();
  }

  /** Aborts when the lease is lost or somebody wants the item cancelled. */
  get signal(): AbortSignal {
    return this.#run.signal;
  }

  /** Why it is lost; null: it is not, as far as we know. */
  get lost(): unknown {
    return this.#lost;
  }

  /** Somebody else has it, or nobody ever will: there is nothing to be said about it any more. */
  get isTakenBack(): boolean {
    return isOneOf(takenBack, this.#lost);
  }

  /** Throws when the service has refused it, or has not heard it for longer than the lease. */
  async settle(end: ItemEnd, { mostTries, onUnheard }: SettleOptions): Promise<void> {
    this.#isSettling = true;
    let left = mostTries;
    const goesOn = () => {
      onUnheard();
      return --left > 0 && performance.now() < this.#until + this.#leaseMs;
    };
    await this.#caller.call("PUT", `/api/queue-items/${this.#item.id}`, {
      body: { ...end, token: this.#item.token },
      timeoutMs: Math.max(longestWaitMs, this.#leaseMs),
      goesOn,
    });
  }

  async release(): Promise<void> {
    this.#released.abort();
    await this.#renewing;
  }

  /** Three times per lease; what failed is said again sooner. */
  async #keep(): Promise<void> {
    let waitMs = this.#leaseMs / 3;
    while (!this.#released.signal.aborted && !this.#isHopeless()) {
      await pause(waitMs, this.#released.signal);
      if (this.#released.signal.aborted) return;
      waitMs = await this.#renew();
    }
  }

  /** How long to wait before the next time. */
  async #renew(): Promise<number> {
    const sentAt = performance.now();
    try {
      const answer = await this.#caller.call<{ cancel_requested: boolean }>(
        ...["POST", `/api/queue-items/${this.#item.id}/renew`],
        {
          body: { token: this.#item.token, lease_seconds: this.#leaseMs / 1_000 },
          ...{ isRepeatable: false, signal: this.#released.signal },
          timeoutMs: this.#leaseMs / 3,
        },
      );
      this.#until = sentAt + this.#leaseMs;
      this.#failures = 0;
      if (answer.cancel_requested) this.#run.abort(new Error("Somebody wants the item cancelled."));
      return this.#leaseMs / 3;
    } catch (error) {
      return this.#released.signal.aborted ? 0 : this.#afterFailure(error);
    }
  }

  #afterFailure(error: unknown): number {
    // Once its end is being said, the answer to that counts: it may have been heard already.
    if (this.#isSettling && isOneOf(takenBack, error)) return this.#leaseMs / 3;
    this.#onError(error);
    if (isOneOf(takenBack, error)) this.#lose(error);
    else if (performance.now() >= this.#until) {
      const message = "The lease ran out before the service could be asked to renew it.";
      this.#lose(new MillraceError("LEASE_LOST", message, { cause: error }));
    }
    const said = error instanceof MillraceError ? Number(error.details.retryAfterMs) || 0 : 0;
    const ours = firstPauseMs * 2 ** this.#failures++ * (0.5 + Math.random());
    return Math.max(said, Math.min(ours, this.#leaseMs / 3));
  }

  #lose(reason: unknown): void {
    this.#lost ??= reason;
    this.#run.abort(reason);
  }

  #isHopeless(): boolean {
    return this.#lost !== null && !this.#isSettling;
  }
}

/** The service will not hear this, whoever says it how often. */
export const isFinal = (error: unknown): boolean =>
  isOneOf(takenBack, error) || isOneOf(keyRefused, error) || isUnheard(error);

/** It was said for as long as there was any sense in it. */
function isUnheard(error: unknown): boolean {
  if (!(error instanceof MillraceError) || error.code === "SERVICE_UNAVAILABLE") return true;
  const status = Number(error.details.status);
  return status === 429 || status >= 500;
}
