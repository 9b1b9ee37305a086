// Tokens of somebody else's: who signed them, for whom, until when (RFC 8725). What is not said is refused.

import { createHash, createPublicKey, createSecretKey, type KeyObject } from "node:crypto";
import type * as jose from "jose";
import { MillraceError } from "../domain/errors.ts";
import type { JwtSettings } from "../runtime/jwt-settings.ts";
import { type Role, roles } from "../store/api-key.ts";
import type { Identity } from "./identity.ts";

interface Trust {
  /** Decided by the key we were given, never by the token. */
  readonly algorithms: string[];
  readonly key: KeyObject | jose.JWTVerifyGetKey;
}

const rsa = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
const curves: Readonly<Record<string, string>> = {
  prime256v1: "ES256",
  secp384r1: "ES384",
  secp521r1: "ES512",
};
const asymmetric = [...rsa, ...Object.values(curves), "EdDSA", "Ed25519"];
const symmetric = ["HS256", "HS384", "HS512"];

const fetchTimeoutMs = 5_000;
const cacheMs = 10 * 60_000;
const toleranceSeconds = 5;
const shape = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const printable = /^[\p{L}\p{N}\p{P}\p{S} ]{1,200}$/u;

export class JwtVerifier {
  readonly #settings: JwtSettings;
  readonly #jose: typeof jose;
  readonly #trust: Trust;

  private constructor(settings: JwtSettings, library: typeof jose, trust: Trust) {
    this.#settings = settings;
    this.#jose = library;
    this.#trust = trust;
  }

  /** `refetchMs`: published keys are not asked for more often, whatever tokens name. */
  static async create(settings: JwtSettings, refetchMs: number): Promise<JwtVerifier> {
    const { key, jwksUrl } = settings;
    if ((key === undefined) === (jwksUrl === undefined))
      throw invalid("Tokens need a key or a JWKS URL, and not both.");
    if (settings.issuer === "" || settings.audience === "")
      throw invalid("Tokens need an issuer and an audience.");
    const library = await import("jose");
    const trust =
      key === undefined ? publishedKeys(library, jwksUrl ?? "", refetchMs) : givenKey(key);
    return new JwtVerifier(settings, library, trust);
  }

  isToken(bearer: string): boolean {
    return shape.test(bearer);
  }

  /** null: it says nothing that we believe. */
  async identify(token: string): Promise<Identity | null> {
    const { issuer, audience } = this.#settings;
    const { algorithms, key } = this.#trust;
    const options = {
      ...{ issuer, audience, algorithms, clockTolerance: toleranceSeconds },
      requiredClaims: ["iss", "aud", "exp", "sub"],
    };
    try {
      const { jwtVerify } = this.#jose;
      const { payload } =
        typeof key === "function"
          ? await jwtVerify(token, key, options)
          : await jwtVerify(token, key, options);
      return this.#identityOf(payload);
    } catch (error) {
      if (this.#isRefusal(error)) return null;
      throw new MillraceError("IDENTITY_UNAVAILABLE", undefined, { cause: error });
    }
  }

  /** A tenant must be named, or expressly none: a claim that was forgotten opens nothing. */
  #identityOf(payload: jose.JWTPayload): Identity | null {
    const { issuer, roleClaim = "millrace_role", tenantClaim = "millrace_tenant" } = this.#settings;
    const { sub } = payload;
    const role = roles.find((one: Role) => one === payload[roleClaim]);
    const tenant = payload[tenantClaim];
    const isTenant = tenant === null || (typeof tenant === "string" && printable.test(tenant));
    if (role === undefined || !isTenant || sub === undefined || !printable.test(sub)) return null;
    return {
      keyId: idOf(issuer, sub),
      ...{ name: sub, role, tenant, rateLimit: null, actor: `jwt:${sub}` },
    };
  }

  /** The token is at fault, and not the way to the keys. */
  #isRefusal(error: unknown): boolean {
    const { errors } = this.#jose;
    if (typeof this.#trust.key !== "function") return true;
    const isOfKeys =
      error instanceof errors.JWKSTimeout ||
      error instanceof errors.JWKSInvalid ||
      (error instanceof errors.JOSEError && error.code === "ERR_JOSE_GENERIC");
    return error instanceof errors.JOSEError && !isOfKeys;
  }
}

function publishedKeys(library: typeof jose, text: string, refetchMs: number): Trust {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url?.hostname ?? "");
  if (url === undefined || !(url.protocol === "https:" || (url.protocol === "http:" && isLocal)))
    throw invalid("MILLRACE_JWKS_URL must be an https URL.");
  const key = library.createRemoteJWKSet(url, {
    timeoutDuration: fetchTimeoutMs,
    cooldownDuration: refetchMs,
    cacheMaxAge: cacheMs,
  });
  return { key, algorithms: asymmetric };
}

function givenKey(text: string): Trust {
  if (text.includes("PRIVATE KEY"))
    throw invalid("MILLRACE_JWT_KEY must be a public key; keep the private one to yourself.");
  if (text.includes("-----BEGIN")) return publicKey(text);
  if (Buffer.byteLength(text) < 32)
    throw invalid("MILLRACE_JWT_KEY must have at least 32 characters if it is a secret.");
  return { key: createSecretKey(text, "utf8"), algorithms: symmetric };
}

function publicKey(pem: string): Trust {
  const key = parsePem(pem);
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type === "rsa" && (details?.modulusLength ?? 0) >= 2_048) return { key, algorithms: rsa };
  const curve = type === "ec" ? curves[details?.namedCurve ?? ""] : undefined;
  if (curve !== undefined) return { key, algorithms: [curve] };
  if (type === "ed25519") return { key, algorithms: ["EdDSA", "Ed25519"] };
  throw invalid(
    "MILLRACE_JWT_KEY must be RSA (2048 bits or more), P-256, P-384, P-521 or Ed25519.",
  );
}

function parsePem(pem: string): KeyObject {
  try {
    return createPublicKey(pem);
  } catch {
    // The cause would quote the key.
    throw invalid("MILLRACE_JWT_KEY is not a public key in PEM.");
  }
}

/** The same for one person always: leases and rate limits go by it. */
function idOf(issuer: string, sub: string): string {
  const hex = createHash("sha256")
    .update(JSON.stringify([issuer, sub]))
    .digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ];
  return [...parts, hex.slice(20, 32)].join("-");
}

const invalid = (message: string) => new MillraceError("OPTION_INVALID", message);
