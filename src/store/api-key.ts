// Keys of the HTTP service, as the store knows them. Secrets are never among it, only their hashes.

export const roles = ["producer", "robot", "staff", "manager", "admin"] as const;
export type Role = (typeof roles)[number];

export interface ApiKey {
  readonly id: string;
  /** null: of all tenants. */
  readonly tenant: string | null;
  readonly name: string;
  readonly role: Role;
  /** Requests per second; null: as the server says. */
  readonly rateLimit: number | null;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly createdAt: Date;
}

export interface NewApiKey {
  readonly id: string;
  readonly tenant: string | null;
  readonly name: string;
  readonly role: Role;
  readonly secretHash: Buffer;
  readonly rateLimit: number | null;
  readonly expiresAt: Date | null;
}

/** A key that is neither revoked nor over, with the hashes of the secrets that open it. */
export interface LiveApiKey extends ApiKey {
  readonly secretHashes: readonly Buffer[];
}

export interface ApiKeyStore {
  create(key: NewApiKey, actor: string): Promise<ApiKey>;
  list(tenant: string | null): Promise<ApiKey[]>;
  find(id: string): Promise<ApiKey | null>;
  /** null: there is none, or it is over. */
  open(id: string): Promise<LiveApiKey | null>;
  /** A new secret; the old one opens the key for so long as well. */
  rotate(id: string, secretHash: Buffer, overlapMs: number, actor: string): Promise<ApiKey | null>;
  revoke(id: string, actor: string): Promise<ApiKey | null>;
  noteUse(id: string): Promise<void>;
}
