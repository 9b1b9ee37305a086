// Sessions of the dashboard, as the store knows them: never by their ids, only by the hashes of those.

export interface NewSession {
  readonly idHash: Buffer;
  readonly keyId: string;
  readonly proof: Buffer;
  readonly lifeMs: number;
  readonly idleMs: number;
}

export interface OpenSession {
  readonly keyId: string;
  readonly proof: Buffer;
  readonly expiresAt: Date;
}

/** For the audit trail. */
export interface SessionOwner {
  readonly actor: string;
  readonly tenant: string | null;
}

export interface SessionStore {
  /** The oldest of a key that has too many end with it. */
  create(session: NewSession, owner: SessionOwner): Promise<OpenSession>;
  /** null: there is none, or it is over. */
  open(idHash: Buffer): Promise<OpenSession | null>;
  /** It was used: it stays open for so long again. */
  touch(idHash: Buffer, idleMs: number): Promise<void>;
  end(idHash: Buffer, owner: SessionOwner): Promise<void>;
}
