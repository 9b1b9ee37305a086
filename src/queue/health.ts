/** A queue on a server that may be gone. */
export interface HealthChecked {
  /** Rejects when the server does not answer in time. */
  ping(timeoutMs: number): Promise<void>;
}
