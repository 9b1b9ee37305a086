// Circuit breakers on the facade: `millrace.breaker(name)` calls through one, `millrace.breakers` looks
// after all of them.

import type { BreakerAction, BreakerSettings } from "../domain/circuit-breaker.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Breaker, BreakerStore } from "../store/breaker.ts";
import type { Notice } from "../store/store.ts";
import { BreakerGuard } from "../worker/breaker-guard.ts";
import { isName } from "../worker/job-definition.ts";
import type { Calls } from "./calls.ts";
import { needReason } from "./need-reason.ts";

interface Parts {
  readonly store: BreakerStore;
  readonly calls: Calls;
  readonly clock: Clock;
  readonly events: Events;
}

/** Whole numbers, or seconds with fractions; null where it is allowed to say "the usual". */
const ranges: Record<keyof BreakerSettings, { min: number; max: number; whole: boolean }> = {
  failureThreshold: { min: 1, max: 1_000_000, whole: true },
  openCooldownSeconds: { min: 0.1, max: 86_400, whole: false },
  halfOpenProbeCount: { min: 1, max: 1_000, whole: true },
  probeTimeoutSeconds: { min: 0.1, max: 86_400, whole: false },
  returnSpreadSeconds: { min: 0, max: 86_400, whole: false },
};

export class Breakers {
  readonly #parts: Parts;
  readonly #guards = new Map<string, BreakerGuard>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The one of this name in this process; it comes into being when it is first used. */
  guard(name: string): BreakerGuard {
    const known = this.#guards.get(name);
    if (known !== undefined) return known;
    const { store, calls, clock, events } = this.#parts;
    const track = <T>(request: () => Promise<T>) => calls.track(request);
    const guard = new BreakerGuard({ name: checkBreaker(name), store, track, clock, events });
    this.#guards.set(name, guard);
    return guard;
  }

  async list(): Promise<Breaker[]> {
    return this.#parts.calls.track(() => this.#parts.store.list());
  }

  async get(name: string): Promise<Breaker | null> {
    checkBreaker(name);
    return this.#parts.calls.track(() => this.#parts.store.find(name));
  }

  /** Only what is named changes, for all processes. Makes the breaker if there is none. */
  async configure(name: string, settings: Partial<BreakerSettings>): Promise<Breaker> {
    checkBreaker(name);
    checkSettings(settings);
    const { calls, store } = this.#parts;
    const configured = await calls.track(() => store.configure(name, settings));
    await this.#guards.get(name)?.reread();
    return configured;
  }

  /** Refuses every call until somebody closes it. */
  async open(name: string, reason: string, actor = "api"): Promise<Breaker> {
    return this.#change(name, "open", reason, actor);
  }

  async close(name: string, reason: string, actor = "api"): Promise<Breaker> {
    return this.#change(name, "close", reason, actor);
  }

  /** Closes it and forgets how often it opened and its last error. Settings stay. */
  async reset(name: string, reason: string, actor = "api"): Promise<Breaker> {
    return this.#change(name, "reset", reason, actor);
  }

  /** Wakes whoever a notice concerns, in this process. */
  hear(notice: Notice): void {
    if (notice.kind !== "breaker") return;
    for (const guard of this.#guards.values()) guard.hear(notice.id);
  }

  /** For tests that move time on: what this process knows is as new as the database. */
  async reread(): Promise<void> {
    await Promise.all([...this.#guards.values()].map((guard) => guard.reread()));
  }

  /** The instance is stopping: what is left is reported, and probes are given back. */
  async stop(): Promise<void> {
    await Promise.all([...this.#guards.values()].map((guard) => guard.close()));
  }

  async #change(
    name: string,
    action: BreakerAction,
    reason: string,
    actor: string,
  ): Promise<Breaker> {
    checkBreaker(name);
    const repair = { reason: needReason(reason), actor };
    const { calls, store } = this.#parts;
    const changed = await calls.track(() => store.change(name, action, repair));
    if (changed === null)
      throw new MillraceError("BREAKER_NOT_FOUND", `There is no breaker "${name}".`);
    // From here on this process goes by it; others hear of it.
    await this.#guards.get(name)?.reread();
    return changed;
  }
}

function checkBreaker(name: unknown): string {
  if (isName(name)) return name;
  throw new MillraceError(
    "OPTION_INVALID",
    "A breaker's name must be a text of 1 to 200 printable characters.",
  );
}

function checkSettings(settings: Partial<BreakerSettings>): void {
  if (typeof settings !== "object" || settings === null || Array.isArray(settings))
    throw new MillraceError("OPTION_INVALID", "A breaker's settings must be an object.");
  for (const [name, value] of Object.entries(settings)) {
    if (!Object.hasOwn(ranges, name))
      throw new MillraceError("OPTION_INVALID", `A breaker has no setting "${name}".`);
    checkSetting(name as keyof BreakerSettings, value);
  }
}

function checkSetting(name: keyof BreakerSettings, value: unknown): void {
  const { min, max, whole } = ranges[name];
  if (value === undefined || (value === null && name === "returnSpreadSeconds")) return;
  const isNumber = typeof value === "number" && value >= min && value <= max;
  if (isNumber && (!whole || Number.isInteger(value))) return;
  const kind = whole ? "whole number" : "number";
  throw new MillraceError("OPTION_INVALID", `${name} must be a ${kind} from ${min} to ${max}.`);
}
