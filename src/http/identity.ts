// Who is calling: a key, its role and its tenant.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ApiKeyStore, LiveApiKey, Role } from "../store/api-key.ts";
import { hashOf, isOneOf, parseKey } from "./api-key-text.ts";

export interface Identity {
  readonly keyId: string;
  readonly name: string;
  readonly role: Role;
  /** null: of all tenants. */
  readonly tenant: string | null;
  readonly rateLimit: number | null;
  /** For the audit trail. */
  readonly actor: string;
}

/** Revocations are felt within five seconds: nothing is remembered for longer than this. */
const freshMs = 2_000;
const noteEveryMs = 60_000;
const mostRemembered = 10_000;

const adminKeyId = "00000000-0000-0000-0000-000000000001";
const adminIdentity: Identity = {
  keyId: adminKeyId,
  name: "admin",
  role: "admin",
  tenant: null,
  rateLimit: null,
  actor: "MILLRACE_ADMIN_KEY",
};

const identityOf = (key: LiveApiKey): Identity => ({
  keyId: key.id,
  name: key.name,
  role: key.role,
  tenant: key.tenant,
  rateLimit: key.rateLimit,
  actor: `key:${key.id}`,
});

interface Remembered {
  readonly key: LiveApiKey;
  readonly readAt: number;
}

export class Identities {
  readonly #keys: ApiKeyStore;
  readonly #clock: Clock;
  readonly #adminHash: Buffer | null;
  readonly #remembered = new Map<string, Remembered>();
  readonly #notedAt = new Map<string, number>();

  constructor(keys: ApiKeyStore, adminKey: string | undefined, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
    this.#adminHash = adminKey === undefined ? null : hashOf(adminKey);
  }

  /** null: nobody we know. */
  async of(bearer: string): Promise<Identity | null> {
    const known = this.known(bearer);
    if (known !== null) return known;
    const text = parseKey(bearer);
    if (text === null) return null;
    await this.#read(text.id);
    return this.known(bearer);
  }

  /** The same without asking the database. */
  known(bearer: string): Identity | null {
    if (this.#isAdminKey(bearer)) return adminIdentity;
    const text = parseKey(bearer);
    const key = text === null ? null : this.#fresh(text.id);
    if (text === null || key === null || !isOneOf(hashOf(text.secret), key.secretHashes))
      return null;
    this.#noteUse(key.id);
    return identityOf(key);
  }

  /** Of the admin key all of it is secret, of the others a part. */
  secretHashOf(bearer: string): Buffer {
    return hashOf(this.#isAdminKey(bearer) ? bearer : (parseKey(bearer)?.secret ?? bearer));
  }

  /** Whose the key is, if one of the secrets that open it now proves it. */
  async provenBy(keyId: string, isProof: (hash: Buffer) => boolean): Promise<Identity | null> {
    if (keyId === adminKeyId)
      return this.#adminHash !== null && isProof(this.#adminHash) ? adminIdentity : null;
    await this.#read(keyId);
    const key = this.#fresh(keyId);
    if (key === null || !key.secretHashes.some(isProof)) return null;
    this.#noteUse(keyId);
    return identityOf(key);
  }

  /** The admin key itself, for those who need not show it; null: there is none. */
  get admin(): { readonly identity: Identity; readonly secretHash: Buffer } | null {
    return this.#adminHash === null
      ? null
      : { identity: adminIdentity, secretHash: this.#adminHash };
  }

  /** Of this process; others learn of it when what they remember is old. */
  forget(id: string): void {
    this.#remembered.delete(id);
  }

  #isAdminKey(bearer: string): boolean {
    return this.#adminHash !== null && isOneOf(hashOf(bearer), [this.#adminHash]);
  }

  #fresh(id: string): LiveApiKey | null {
    const known = this.#remembered.get(id);
    const isFresh = known !== undefined && this.#clock.monotonic() - known.readAt <= freshMs;
    return isFresh ? known.key : null;
  }

  /** What is not there is not remembered: it may be made the next moment. */
  async #read(id: string): Promise<void> {
    if (this.#fresh(id) !== null) return;
    const readAt = this.#clock.monotonic();
    const key = await this.#keys.open(id);
    if (this.#remembered.size >= mostRemembered) this.#remembered.clear();
    if (key === null) this.#remembered.delete(id);
    else this.#remembered.set(id, { key, readAt });
  }

  #noteUse(id: string): void {
    const now = this.#clock.monotonic();
    if (now - (this.#notedAt.get(id) ?? Number.NEGATIVE_INFINITY) < noteEveryMs) return;
    if (this.#notedAt.size >= mostRemembered) this.#notedAt.clear();
    this.#notedAt.set(id, now);
    // A note that is lost is made a minute later.
    void this.#keys.noteUse(id).catch(() => {});
  }
}

const above: Record<Role, readonly Role[]> = {
  producer: ["producer"],
  robot: ["robot"],
  staff: ["staff", "manager", "admin"],
  manager: ["manager", "admin"],
  admin: ["admin"],
};

export const mayCall = (role: Role, access: readonly Role[]): boolean =>
  access.some((one) => above[one].includes(role));

/** The tenant a call reads: the key's own, the one it names, or all (undefined). */
export function tenantToRead({ tenant }: Identity, named: string | undefined): string | undefined {
  if (tenant === null) return named;
  if (named !== undefined && named !== tenant) throw new MillraceError("TENANT_FORBIDDEN");
  return tenant;
}

/** The tenant a call acts on: `default` for a key of all tenants that names none. */
export const tenantToActOn = (identity: Identity, named: string | undefined): string =>
  tenantToRead(identity, named) ?? "default";

/** May this key see what belongs to the tenant? A no looks like nothing being there. */
export const maySee = ({ tenant }: Identity, owner: string): boolean =>
  tenant === null || tenant === owner;
