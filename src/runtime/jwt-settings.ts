// Which tokens of somebody else's the HTTP service accepts.

import { MillraceError } from "../domain/errors.ts";
import { blankToNone, type Environment } from "../domain/setting-values.ts";

export interface JwtSettings {
  /** A public key in PEM, or a secret that both sides share. */
  readonly key?: string | undefined;
  /** Or where the keys are published. */
  readonly jwksUrl?: string | undefined;
  readonly issuer: string;
  readonly audience: string;
  /** `millrace_role` unless told. */
  readonly roleClaim?: string;
  /** `millrace_tenant` unless told. */
  readonly tenantClaim?: string;
}

/** undefined: none. */
export function readJwtSettings(env: Environment): JwtSettings | undefined {
  const key = blankToNone(env.MILLRACE_JWT_KEY);
  const jwksUrl = blankToNone(env.MILLRACE_JWKS_URL);
  const issuer = blankToNone(env.MILLRACE_JWT_ISSUER);
  const audience = blankToNone(env.MILLRACE_JWT_AUDIENCE);
  if (key === undefined && jwksUrl === undefined) {
    if (issuer === undefined && audience === undefined) return undefined;
    throw invalid("Tokens need MILLRACE_JWT_KEY or MILLRACE_JWKS_URL.");
  }
  if (issuer === undefined || audience === undefined)
    throw invalid("Tokens need MILLRACE_JWT_ISSUER and MILLRACE_JWT_AUDIENCE.");
  return Object.freeze({
    // One line in the environment, several in the file.
    key: key?.replaceAll("\\n", "\n"),
    jwksUrl,
    issuer,
    audience,
    roleClaim: blankToNone(env.MILLRACE_JWT_ROLE_CLAIM) ?? "millrace_role",
    tenantClaim: blankToNone(env.MILLRACE_JWT_TENANT_CLAIM) ?? "millrace_tenant",
  });
}

const invalid = (message: string) => new MillraceError("OPTION_INVALID", message);
