// What has happened, in one order for everybody, as the store knows it.

export const eventKinds = [
  "job.dead",
  "job.reprocessed",
  "job.discarded",
  "queue.created",
  "queue.changed",
  "queue.paused",
  "queue.resumed",
  "queue.deleted",
  "tenant.paused",
  "tenant.resumed",
  "breaker.opened",
  "breaker.half_open",
  "breaker.closed",
  "trigger.fired",
  "trigger.failed",
  "webhook.failing",
  "webhook.recovered",
  "leader.changed",
  "audit",
] as const;

export interface StoredEvent {
  readonly no: number;
  readonly at: Date;
  /** One of the kinds, or one that a newer process has raised. */
  readonly kind: string;
  /** null: nobody's in particular. */
  readonly tenant: string | null;
  readonly data: unknown;
}

export interface EventStore {
  /** Gives what was committed since its place in the order. */
  arrange(): Promise<void>;
  /** Those after this place, the oldest first. */
  after(no: number, limit: number): Promise<StoredEvent[]>;
  /** The first and the last place that are taken; 0 and 0: none is. */
  ends(): Promise<{ readonly first: number; readonly last: number }>;
}
