// Most handlers never look at their signal, and an AbortController is the dearest part of a short run:
// it is made when somebody asks for it.

export type AbortCause = "cancelled" | "lease_lost" | "not_stored" | "stopping" | "max_runtime";

/** What a handler's signal is aborted with. */
export class JobAborted extends Error {
  override readonly cause: AbortCause;

  constructor(cause: AbortCause) {
    super(`The run was aborted: ${cause.replace("_", " ")}.`);
    this.name = "JobAborted";
    this.cause = cause;
  }
}

export interface AbortSource {
  readonly cause: AbortCause | null;
  readonly signal: AbortSignal;
  /** False when there was a cause before: the first one stays. */
  abort(cause: AbortCause): boolean;
}

export class AbortHandle implements AbortSource {
  #controller: AbortController | null = null;
  #cause: AbortCause | null = null;

  get cause(): AbortCause | null {
    return this.#cause;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#cause !== null) this.#controller.abort(new JobAborted(this.#cause));
    return this.#controller.signal;
  }

  abort(cause: AbortCause): boolean {
    if (this.#cause !== null) return false;
    this.#cause = cause;
    this.#controller?.abort(new JobAborted(cause));
    return true;
  }
}
