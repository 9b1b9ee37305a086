// A payload says in `payload_version` how it is built. Jobs outlive deployments, so an old payload
// is lifted, step by step, to the version that the handler knows.

export const defaultPayloadVersion = "1.0";

export interface Upcaster {
  readonly to: string;
  /**
   * Gets a copy and returns the payload in the version `to`. A method, so that an upcaster may
   * declare the type of the old payload.
   */
  up(payload: unknown): unknown;
}

/** Keyed by the version that an upcaster upgrades from. */
export type Upcasters = Readonly<Record<string, Upcaster>>;

export type VersionCode =
  | "payload_version_invalid"
  | "payload_version_too_new"
  | "upcaster_missing"
  | "upcaster_not_forward"
  | "upcaster_failed";

export interface VersionProblem {
  readonly code: VersionCode;
  readonly path: string;
  readonly message: string;
  readonly cause?: unknown;
}

export type Upcast =
  | { readonly ok: true; readonly payload: unknown; readonly version: string }
  | { readonly ok: false; readonly problem: VersionProblem };

const format = /^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$/;

export function isVersion(value: unknown): value is string {
  return typeof value === "string" && format.test(value);
}

/** Negative when `a` is older than `b`, 0 when they are equal, positive when it is newer. */
export function compareVersions(a: string, b: string): number {
  const [aMajor = 0, aMinor = 0] = a.split(".").map(Number);
  const [bMajor = 0, bMinor = 0] = b.split(".").map(Number);
  return aMajor - bMajor || aMinor - bMinor;
}

/** What the payload says, or the default when it says nothing. */
export function versionOf(payload: unknown): unknown {
  return isObject(payload) && Object.hasOwn(payload, "payload_version")
    ? payload.payload_version
    : defaultPayloadVersion;
}

/** Two words about how one payload is built: one of them is wrong, and nobody can know which. */
export const contradicts = (defined: string, payload: unknown): boolean =>
  isObject(payload) &&
  Object.hasOwn(payload, "payload_version") &&
  payload.payload_version !== defined;

/** What is kept beside a payload: nothing for the default, which every reader assumes. */
export function keptVersion(defined: string | undefined, payload: unknown): string | undefined {
  const version = defined ?? versionOf(payload);
  return version === defaultPayloadVersion || typeof version !== "string" ? undefined : version;
}

export interface UpcastOptions {
  /** The payload's own version when left out. */
  readonly from?: string;
  readonly to: string;
  readonly upcasters: Upcasters;
}

export function upcast(payload: unknown, options: UpcastOptions): Upcast {
  const from = options.from ?? versionOf(payload);
  const { to, upcasters } = options;
  if (!isVersion(from)) return failed("payload_version_invalid", "The version is not like 1.0.");
  if (!isVersion(to)) return failed("payload_version_invalid", "The target is not like 1.0.");
  if (from === to) return { ok: true, payload, version: to };
  if (compareVersions(from, to) > 0) {
    const message = `The payload has version ${from}; this code knows versions up to ${to}.`;
    return failed("payload_version_too_new", message);
  }
  const chain = chainOf(from, to, upcasters);
  return "code" in chain ? { ok: false, problem: chain } : climb(payload, chain, to);
}

/** Problems of a set of upcasters, found where a job is defined instead of where it runs. */
export function checkUpcasters(upcasters: Upcasters, to: string): VersionProblem[] {
  if (!isVersion(to)) return [problem("payload_version_invalid", "The target is not like 1.0.")];
  return Object.keys(upcasters).flatMap((from) => {
    if (!isVersion(from)) {
      return [problem("payload_version_invalid", "An upcaster's key is not like 1.0.")];
    }
    const chain = chainOf(from, to, upcasters);
    return "code" in chain ? [chain] : [];
  });
}

type Chain = readonly (Upcaster & { readonly from: string })[];

// Every step must lead to a higher version, at most the target: so a chain cannot run in circles.
function chainOf(from: string, to: string, upcasters: Upcasters): Chain | VersionProblem {
  const chain: (Upcaster & { readonly from: string })[] = [];
  for (let at = from; at !== to; ) {
    const next = Object.hasOwn(upcasters, at) ? upcasters[at] : undefined;
    if (next === undefined) {
      return problem("upcaster_missing", `No upcaster leads from ${at} towards ${to}.`);
    }
    if (!isVersion(next.to)) {
      const message = `The upcaster from ${at} leads to a version that is not like 1.0.`;
      return problem("payload_version_invalid", message);
    }
    if (compareVersions(next.to, at) <= 0) {
      return problem("upcaster_not_forward", `The upcaster from ${at} leads to ${next.to}.`);
    }
    if (compareVersions(next.to, to) > 0) {
      return problem("upcaster_missing", `The upcaster from ${at} leads past ${to}.`);
    }
    chain.push({ ...next, from: at });
    at = next.to;
  }
  return chain;
}

function climb(payload: unknown, chain: Chain, to: string): Upcast {
  let current: unknown = structuredClone(payload);
  for (const step of chain) {
    try {
      current = step.up(current);
    } catch (cause) {
      return failed("upcaster_failed", `The upcaster from ${step.from} threw an error.`, cause);
    }
    if (current === undefined || current instanceof Promise) {
      const message = `The upcaster from ${step.from} must return a payload, and not a promise.`;
      return failed("upcaster_failed", message);
    }
  }
  return { ok: true, payload: stamped(current, to), version: to };
}

// A payload that never said its version keeps its fields: its schema may not allow another one.
function stamped(payload: unknown, version: string): unknown {
  if (!isObject(payload) || !Object.hasOwn(payload, "payload_version")) return payload;
  return { ...payload, payload_version: version };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function problem(code: VersionCode, message: string, cause?: unknown): VersionProblem {
  const base = { code, path: "$.payload_version", message };
  return cause === undefined ? base : { ...base, cause };
}

function failed(code: VersionCode, message: string, cause?: unknown): Upcast {
  return { ok: false, problem: problem(code, message, cause) };
}
