// Lets a call in: the key, its role, and how often it may call.

import { MillraceError } from "../domain/errors.ts";
import { parseKey } from "./api-key-text.ts";
import type { Route } from "./contract/route.ts";
import { type Identity, mayCall } from "./identity.ts";
import { RateLimit, rateLimited } from "./rate-limit.ts";
import type { Service } from "./served.ts";

interface Limits {
  readonly requestsPerSecond: number;
  readonly guessesPerMinute: number;
}

export class Caller {
  readonly #service: Service;
  readonly #limits: Limits;
  readonly #calls: RateLimit;
  readonly #guesses: RateLimit;

  constructor(service: Service, limits: Limits) {
    this.#service = service;
    this.#limits = limits;
    this.#calls = new RateLimit(service.clock);
    this.#guesses = new RateLimit(service.clock);
  }

  /** null: the route is for everybody. */
  async admit(
    route: Route,
    authorization: string | undefined,
    address: string,
  ): Promise<Identity | null> {
    if (route.access === "public") return null;
    const identity = await this.#identify(authorization, address);
    const { requestsPerSecond } = this.#limits;
    const seconds = this.#calls.take(identity.keyId, identity.rateLimit ?? requestsPerSecond);
    if (seconds > 0) throw rateLimited(seconds);
    if (!mayCall(identity.role, route.access))
      throw new MillraceError("FORBIDDEN", `The role ${identity.role} may not do this.`);
    return identity;
  }

  /** Whoever has guessed a key's secret too often is not looked up; other keys at the address are. */
  async #identify(authorization: string | undefined, address: string): Promise<Identity> {
    const { guessesPerMinute } = this.#limits;
    const perSecond = guessesPerMinute / 60;
    const bearer = /^Bearer ([\x21-\x7e]{1,500})$/i.exec(authorization ?? "")?.[1];
    if (bearer === undefined) throw new MillraceError("UNAUTHENTICATED");
    const guesser = `${address} ${parseKey(bearer)?.id ?? "?"}`;
    const isThrottled = this.#guesses.peek(guesser, perSecond, guessesPerMinute) > 0;
    const identity = isThrottled
      ? this.#service.identities.known(bearer)
      : await this.#service.identities.of(bearer);
    if (identity !== null) return identity;
    const seconds = this.#guesses.take(guesser, perSecond, guessesPerMinute);
    throw seconds > 0 ? rateLimited(seconds) : new MillraceError("UNAUTHENTICATED");
  }
}
