// What keeps the queue healthy, as the store knows it.

import type { SuspectRun } from "../domain/outcome.ts";
import type { Timeline } from "../domain/timeline.ts";
import type { Token } from "../domain/token.ts";
import type { Settled, Settlement } from "./settlement.ts";

export interface LapsedJob {
  readonly id: string;
  readonly token: Token;
  readonly type: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashCount: number;
  readonly timeline: Timeline;
  readonly startedAt: Date;
  readonly correlationId: string;
  readonly worker: string;
  /** The lease is alive, but this run is longer than its maxRuntimeMs. */
  readonly overtime: boolean;
  /** What its lease told of the suspect of its claim. */
  readonly ran: SuspectRun;
  /** A suspect of another worker in its process ran alone. */
  readonly spared: boolean;
}

export interface LapsedLease {
  readonly leaseId: string | null;
  readonly jobs: readonly LapsedJob[];
}

export interface LeaseCensus {
  readonly live: number;
  readonly lapsed: number;
  readonly serverUpMs: number;
  /** Since the last election, or since the office fell vacant; null: there has never been a leader. */
  readonly leaderChangedMs: number | null;
}

export interface Promoted {
  readonly promoted: number;
  readonly queueIds: readonly number[];
  /** By how much each job was late, by the database's clock. */
  readonly latenessMs: readonly number[];
}

export interface Pruned {
  readonly partitions: number;
  readonly deadLetters: number;
  readonly timelines: number;
  readonly auditEntries: number;
}

export interface Retention {
  /** null: the audit trail is kept for ever. */
  readonly auditDays: number | null;
}

export interface UpkeepSession {
  promote(limit: number): Promise<Promoted>;
  waitForDue(): Promise<number | null>;
  expire(limit: number, process: string): Promise<number>;
  census(): Promise<LeaseCensus>;
  findLapsed(): Promise<LapsedLease[]>;
  settleLapsed(
    leaseId: string | null,
    settlements: readonly Settlement[],
    process: string,
  ): Promise<Settled>;
  forgetEnded(): Promise<void>;
  /** Is a leader in office, in whichever process? */
  hasLeader(): Promise<boolean>;
  /** Tells whoever schedules that a job falls due in so many milliseconds. */
  announceDue(delayMs: number): Promise<void>;
  /** About how many jobs are ready or running. */
  hotRows(): Promise<number>;
  /** False when another process is at it. */
  vacuum(): Promise<boolean>;
  tidy(): Promise<boolean>;
  /** Lets go of what is past its queue's retention, or the trail's; says of how much. */
  prune(retention: Retention): Promise<Pruned>;
  close(): Promise<void>;
}
