// The audit trail, as the store knows it: append-only, each entry's hash covers the one before.

export interface AuditEntry {
  readonly no: number;
  readonly at: Date;
  readonly tenant: string | null;
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly reason: string | null;
  readonly details: unknown;
  /** Hex. */
  readonly hash: string;
}

export interface AuditFilter {
  readonly tenant?: string | undefined;
  readonly action?: string | undefined;
  readonly target?: string | undefined;
}

/** One link as its hash was made from: every field as text. */
export interface AuditLink {
  readonly no: number;
  readonly fields: readonly (string | null)[];
  readonly hash: string;
}

export interface AuditHead {
  readonly no: number;
  readonly hash: string;
}

export interface AuditStore {
  add(entry: {
    tenant: string | null;
    actor: string;
    action: string;
    target: string;
    reason?: string | undefined;
    details?: unknown;
  }): Promise<void>;
  /** The newest first, before this number if one is given. */
  list(filter: AuditFilter, before: number | null, limit: number): Promise<AuditEntry[]>;
  /** In order, after this number. */
  links(after: number, limit: number): Promise<AuditLink[]>;
  head(): Promise<AuditHead>;
  /** The last entry that was let go of, as the newest entry `audit_pruned` says; null: none ever was. */
  pruned(): Promise<AuditHead | null>;
}
