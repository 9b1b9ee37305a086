// Answers of routes that the dashboard needs a few fields of.

import type { JobState, Role } from "./answers.ts";

export interface Session {
  readonly name: string;
  readonly role: Role;
  /** null: of all tenants. */
  readonly tenant: string | null;
  readonly expires_at: string | null;
}

export interface Explanation {
  readonly job_id: string;
  readonly state: JobState;
  readonly running: boolean;
  readonly reasons: readonly {
    readonly code: string;
    readonly message: string;
    readonly until?: string | null;
    readonly holders?: readonly { readonly job_id: string; readonly worker: string | null }[];
  }[];
}

export interface Breaker {
  readonly name: string;
  readonly state: string;
  readonly failures: number;
  readonly openings: number;
  readonly retry_after_ms: number | null;
  readonly cause: string | null;
  readonly reason: string | null;
  readonly changed_at: string;
  readonly last_failure_at: string | null;
  readonly last_error: string | null;
  readonly failure_threshold: number;
}

export interface Tenant {
  readonly tenant_id: string;
  readonly weight: number;
  readonly rate_limit: { readonly limit: number; readonly window_ms: number } | null;
  readonly paused: boolean;
}

export interface Erasure {
  readonly done: boolean;
  readonly erased: {
    readonly waiting: number;
    readonly dead_letters: number;
    readonly history: number;
  };
  readonly next_cursor: string | null;
}
