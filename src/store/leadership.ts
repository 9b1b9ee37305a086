// The office of leader, and who is at work, as the store knows it. See docs/design/leadership.md.

/** Reserved for the office: never waits behind work. */
export interface LeaderSession {
  /** A new term for this holder; null while somebody else is in office. */
  elect(holder: string, ttlMs: number): Promise<number | null>;
  /** False: the term is over or superseded, and will not come back. */
  renew(term: number, ttlMs: number): Promise<boolean>;
  resign(term: number): Promise<void>;
  close(): Promise<void>;
}

export interface Leadership {
  /** Of the last election; 0: there has been none. */
  readonly term: number;
  readonly holder: string | null;
  readonly electedAt: Date | null;
  readonly inOffice: boolean;
}

export interface WorkerPresence {
  readonly leaseId: string;
  readonly name: string;
  readonly state: "live" | "dead";
  readonly startedAt: Date;
  readonly renewedAt: Date;
  /** What it serves, as it said when it started. */
  readonly info: unknown;
  /** How many jobs of each type it holds. */
  readonly running: Readonly<Record<string, number>>;
}
