// What operators do with tenants beyond their settings.

/** How far an erasure has come: in this table, behind this id. */
export interface ErasePlace {
  readonly table: "dead_job" | "history";
  readonly after: string;
}

export interface Erased {
  readonly deadLetters: number;
  readonly history: number;
  /** Where to go on; null: everything was looked at. */
  readonly next: ErasePlace | null;
}

export interface TenantAdmin {
  /** Everybody who has jobs, queues, keys or settings, by name. */
  names(after: string, limit: number): Promise<string[]>;
  isKnown(name: string): Promise<boolean>;
  /** Some of its jobs that run. */
  running(name: string, limit: number): Promise<string[]>;
  /** Takes out a bounded part of what waits, and keeps an erased record of it. */
  eraseWaiting(name: string): Promise<{ readonly gone: number; readonly isAll: boolean }>;
  /** A bounded part of what has ended, and of what is kept beside jobs. */
  eraseEnded(name: string, place: ErasePlace | null): Promise<Erased>;
}
