// Sessions: rows in the database that a browser's cookie opens, for as long as the key behind them does.

import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { OpenSession, SessionStore } from "../store/session.ts";
import { hashOf } from "./api-key-text.ts";
import type { Identities, Identity } from "./identity.ts";

export interface Session {
  readonly id: string;
  readonly identity: Identity;
  /** At the latest. */
  readonly expiresAt: Date;
}

export interface SessionLife {
  readonly lifeMs: number;
  readonly idleMs: number;
}

interface Remembered {
  readonly session: OpenSession | null;
  readonly readAt: number;
}

/** Signing out is felt by other servers within this. */
const freshMs = 2_000;
const touchEveryMs = 60_000;
const mostRemembered = 10_000;

export class Sessions {
  readonly #store: SessionStore;
  readonly #identities: Identities;
  readonly #clock: Clock;
  readonly #life: SessionLife;
  readonly #remembered = new Map<string, Remembered>();
  readonly #touchedAt = new Map<string, number>();

  constructor(store: SessionStore, identities: Identities, clock: Clock, life: SessionLife) {
    this.#store = store;
    this.#identities = identities;
    this.#clock = clock;
    this.#life = life;
  }

  /** Always under a new id, whatever the browser brought along. */
  async start(identity: Identity, secretHash: Buffer): Promise<Session> {
    const id = randomBytes(32).toString("base64url");
    const proof = proofOf(id, secretHash);
    const made = { idHash: hashOf(id), keyId: identity.keyId, proof, ...this.#life };
    const { expiresAt } = await this.#store.create(made, identity);
    return { id, identity, expiresAt };
  }

  /** null: there is none, it is over, or its key is. */
  async of(id: string): Promise<Session | null> {
    const open = await this.#read(id);
    if (open === null) return null;
    const identity = await this.#identities.provenBy(open.keyId, (secretHash) =>
      proofOf(id, secretHash).equals(open.proof),
    );
    return identity === null ? null : { id, identity, expiresAt: open.expiresAt };
  }

  /** Somebody used it just now. */
  noteUse({ id }: Session): void {
    const now = this.#clock.monotonic();
    const touchedAt = this.#touchedAt.get(id) ?? Number.NEGATIVE_INFINITY;
    if (now - touchedAt < Math.min(touchEveryMs, this.#life.idleMs / 2)) return;
    if (this.#touchedAt.size >= mostRemembered) this.#touchedAt.clear();
    this.#touchedAt.set(id, now);
    // A note that is lost is made a minute later.
    void this.#store.touch(hashOf(id), this.#life.idleMs).catch(() => {});
  }

  async end({ id, identity }: Session): Promise<void> {
    this.#remembered.delete(id);
    await this.#store.end(hashOf(id), identity);
    this.#remembered.delete(id);
  }

  async #read(id: string): Promise<OpenSession | null> {
    const known = this.#remembered.get(id);
    const readAt = this.#clock.monotonic();
    if (known !== undefined && readAt - known.readAt <= freshMs) return known.session;
    const session = await this.#store.open(hashOf(id));
    if (this.#remembered.size >= mostRemembered) this.#remembered.clear();
    this.#remembered.set(id, { session, readAt });
    return session;
  }
}

/** Whoever reads the table learns neither the id nor anything about the secret. */
const proofOf = (id: string, secretHash: Buffer): Buffer =>
  createHmac("sha256", secretHash).update(id).digest();
