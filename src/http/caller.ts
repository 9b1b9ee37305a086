// Lets a call in: the key or the session, its role, and how often it may call.

import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { parseKey } from "./api-key-text.ts";
import type { Arrival } from "./arrival.ts";
import type { Route } from "./contract/route.ts";
import { type Identities, type Identity, mayCall } from "./identity.ts";
import type { JwtVerifier } from "./jwt.ts";
import { RateLimit, rateLimited } from "./rate-limit.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { Tickets } from "./tickets.ts";

interface CallerOptions {
  readonly identities: Identities;
  readonly sessions: Sessions;
  readonly tickets: Tickets;
  /** null: keys only. */
  readonly jwt: JwtVerifier | null;
  readonly clock: Clock;
  readonly limits: { readonly requestsPerSecond: number; readonly guessesPerMinute: number };
}

export interface Admitted {
  readonly identity: Identity;
  /** null: it came with a key. */
  readonly session: Session | null;
}

export class Caller {
  readonly #options: CallerOptions;
  readonly #calls: RateLimit;
  readonly #guesses: RateLimit;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.#calls = new RateLimit(options.clock);
    this.#guesses = new RateLimit(options.clock);
  }

  /** null: the route is for everybody. */
  async admit(route: Route, arrival: Arrival): Promise<Admitted | null> {
    if (route.access === "public") {
      refuseForeignPage(arrival);
      return null;
    }
    const admitted = await this.#whoIs(route, arrival);
    this.#countCall(admitted.identity);
    checkRole(route, admitted.identity);
    if (admitted.session !== null) this.#options.sessions.noteUse(admitted.session);
    return admitted;
  }

  /** Who it is and whether the role is enough, without counting the call. */
  async recognise(route: Route, arrival: Arrival): Promise<Admitted> {
    const admitted = await this.#whoIs(route, arrival);
    checkRole(route, admitted.identity);
    return admitted;
  }

  /** Ends the session that the browser had, and gives it one with another id. */
  async signIn(
    shown: { readonly key: string } | { readonly ticket: string },
    arrival: Arrival,
  ): Promise<Session> {
    const { identities, sessions } = this.#options;
    const found =
      "ticket" in shown
        ? this.#redeem(shown.ticket, arrival.address)
        : {
            identity: await this.#identify(shown.key, arrival.address),
            secretHash: identities.secretHashOf(shown.key),
          };
    this.#countCall(found.identity);
    const old = arrival.sessionId === undefined ? null : await sessions.of(arrival.sessionId);
    const session = await sessions.start(found.identity, found.secretHash);
    if (old !== null) await sessions.end(old);
    return session;
  }

  async #whoIs(route: Route, arrival: Arrival): Promise<Admitted> {
    const { bearer, sessionId, address } = arrival;
    if (bearer !== undefined || sessionId === undefined || route.bearerOnly === true) {
      const shown = /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(bearer ?? "")?.[1];
      if (shown === undefined) throw new MillraceError("UNAUTHENTICATED");
      return { identity: await this.#believe(shown, address), session: null };
    }
    const session = await this.#options.sessions.of(sessionId);
    if (session === null) throw new MillraceError("UNAUTHENTICATED");
    refuseForgery(arrival);
    return { identity: session.identity, session };
  }

  #countCall({ keyId, rateLimit }: Identity): void {
    const seconds = this.#calls.take(keyId, rateLimit ?? this.#options.limits.requestsPerSecond);
    if (seconds > 0) throw rateLimited(seconds);
  }

  /** Whoever has guessed a key's secret too often is not looked up; other keys at the address are. */
  async #identify(key: string, address: string): Promise<Identity> {
    const { identities } = this.#options;
    const guesser = `${address} ${parseKey(key)?.id ?? "?"}`;
    const identity = this.#mayGuess(guesser) ? await identities.of(key) : identities.known(key);
    if (identity !== null) return identity;
    throw this.#wrongGuess(guesser);
  }

  /** A key, or a token where those are accepted; the admin key may look like anything. */
  async #believe(shown: string, address: string): Promise<Identity> {
    const { identities, jwt } = this.#options;
    if (jwt === null || !jwt.isToken(shown) || identities.known(shown) !== null)
      return this.#identify(shown, address);
    const identity = await jwt.identify(shown);
    if (identity !== null) return identity;
    throw this.#wrongGuess(`${address} jwt`);
  }

  #redeem(ticket: string, address: string) {
    const { identities, tickets } = this.#options;
    const guesser = `${address} ticket`;
    const { admin } = identities;
    if (admin !== null && tickets.redeem(ticket)) return admin;
    throw this.#wrongGuess(guesser);
  }

  #mayGuess(guesser: string): boolean {
    const { guessesPerMinute } = this.#options.limits;
    return this.#guesses.peek(guesser, guessesPerMinute / 60, guessesPerMinute) === 0;
  }

  #wrongGuess(guesser: string): MillraceError {
    const { guessesPerMinute } = this.#options.limits;
    const seconds = this.#guesses.take(guesser, guessesPerMinute / 60, guessesPerMinute);
    return seconds > 0 ? rateLimited(seconds) : new MillraceError("UNAUTHENTICATED");
  }
}

function checkRole({ access }: Route, { role }: Identity): void {
  if (access !== "public" && !mayCall(role, access))
    throw new MillraceError("FORBIDDEN", `The role ${role} may not do this.`);
}

/** What anybody may call, no page of somebody else's may make a visitor's browser call. */
function refuseForeignPage({ method, page }: Arrival): void {
  if (method !== "GET" && page === "foreign") throw new MillraceError("CROSS_SITE_REFUSED");
}

/** A browser adds the cookie by itself: only our own pages may change something with it. */
function refuseForgery({ method, page }: Arrival): void {
  if (method === "GET" || method === "HEAD") return;
  if (page !== "own") throw new MillraceError("CROSS_SITE_REFUSED");
}
