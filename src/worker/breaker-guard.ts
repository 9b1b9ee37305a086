// One breaker in this process: lets calls through or refuses them, and reports how they ended.

import { AsyncLocalStorage } from "node:async_hooks";
import { checkFunction, checkOptions, type Known, knownNames } from "../domain/check-options.ts";
import {
  admit,
  BreakerOpenError,
  type Pass,
  type Verdict,
  verdictOf,
} from "../domain/circuit-breaker.ts";
import { describeError } from "../domain/describe-error.ts";
import type { Classifier } from "../domain/error-class.ts";
import { MillraceError } from "../domain/errors.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import { BreakerCopy, type BreakerCopyOptions, patienceMs } from "./breaker-copy.ts";
import { BreakerReports } from "./breaker-reports.ts";

export interface BreakerRunOptions {
  /** Says what an error means, before the usual rules do. */
  readonly classify?: Classifier | undefined;
  /** Once it is aborted, an error is the caller's doing and says nothing about the platform. */
  readonly signal?: { readonly aborted: boolean; readonly reason?: unknown } | undefined;
  /** While PostgreSQL does not answer, and it was last seen closed or not at all; "call" if left out. */
  readonly whenUnknown?: "call" | "refuse" | undefined;
}

const known = knownNames({
  ...{ classify: true, signal: true, whenUnknown: true },
} satisfies Known<BreakerRunOptions>);

function checkRun(options: BreakerRunOptions): void {
  checkOptions("breaker.run", options, known);
  const { classify, signal, whenUnknown } = options;
  checkFunction("classify", classify);
  if (signal !== undefined && (typeof signal !== "object" || signal === null))
    throw new MillraceError("OPTION_INVALID", "signal must be an AbortSignal.");
  if (whenUnknown !== undefined && whenUnknown !== "call" && whenUnknown !== "refuse")
    throw new MillraceError("OPTION_INVALID", 'whenUnknown must be "call" or "refuse".');
}

/** A call within a call of the same breaker belongs to it, as long as that one lasts. */
interface Scope {
  readonly guard: BreakerGuard;
  readonly outer: Scope | undefined;
  hasEnded: boolean;
}

const scopes = new AsyncLocalStorage<Scope>();

/** What probes failed with, and how long the breaker puts off the job that lets it through. */
const failedProbes = new WeakMap<object, BreakerOpenError>();

/** Once: the same error may be thrown again by a call that was none. */
export function takeFailedProbe(error: unknown): BreakerOpenError | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const refusal = failedProbes.get(error);
  failedProbes.delete(error);
  return refusal;
}

export class BreakerGuard {
  readonly name: string;
  readonly #options: BreakerCopyOptions;
  readonly #copy: BreakerCopy;
  readonly #reports: BreakerReports;
  readonly #probes = new Map<string, Pass>();
  #asking: Promise<unknown> = Promise.resolve();
  /** Asked for, and no answer came: perhaps it is ours. */
  #unanswered: string | null = null;
  #volunteered = 0;
  #closed = false;

  constructor(options: BreakerCopyOptions) {
    this.name = options.name;
    this.#options = options;
    this.#copy = new BreakerCopy(options);
    this.#reports = new BreakerReports(options.name, options.store, this.#copy);
  }

  /** Calls `fn` if the breaker lets it; throws a BreakerOpenError if not. */
  async run<T>(fn: () => T | PromiseLike<T>, options: BreakerRunOptions = {}): Promise<T> {
    if (typeof fn !== "function")
      throw new MillraceError("OPTION_INVALID", "breaker.run(fn) needs a function to call.");
    checkRun(options);
    if (this.#isWithin(scopes.getStore())) return fn();
    if (this.#closed) throw new MillraceError("STOPPED");
    const pass = this.#passNow() ?? (await this.#passLater(options));
    const hasGivenUp = () => options.signal?.aborted === true;
    if (hasGivenUp()) {
      await this.#report(pass, "none", null);
      throw options.signal?.reason ?? new Error("The call was given up before it began.");
    }
    const scope: Scope = { guard: this, outer: scopes.getStore(), hasEnded: false };
    try {
      const value = await scopes.run(scope, fn);
      scope.hasEnded = true;
      await this.#report(pass, "success", null);
      return value;
    } catch (error) {
      scope.hasEnded = true;
      const verdict = hasGivenUp() ? "none" : verdictOf(error, options.classify);
      await this.#report(pass, verdict, this.#describe(error));
      this.#noteProbe(error, pass.probe !== null && verdict === "failure");
      throw error;
    }
  }

  hear(id: number): void {
    this.#copy.hear(id);
  }

  async reread(): Promise<void> {
    // What is being read already may be from before.
    await this.#copy.read();
    await this.#copy.read();
  }

  /** What is left is reported, and probes that are out are given back. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#reports.flush();
    await Promise.all([...this.#probes.values()].map((pass) => this.#tell(pass, "none", null)));
  }

  #isWithin(scope: Scope | undefined): boolean {
    if (scope === undefined) return false;
    return (scope.guard === this && !scope.hasEnded) || this.#isWithin(scope.outer);
  }

  /** By what is known here. null: PostgreSQL must be asked. */
  #passNow(): Pass | null {
    const copy = this.#copy.current();
    if (copy === null) return null;
    const now = this.#options.clock.monotonic();
    const admission = admit(copy.machine, copy.stored, now, this.#unanswered ?? "");
    if (admission.kind === "refused") throw this.#refusal(admission.retryAfterMs);
    return admission.pass.probe === null ? admission.pass : null;
  }

  async #passLater(options: BreakerRunOptions): Promise<Pass> {
    if (this.#copy.current() === null && !(await this.#copy.read()))
      return this.#passBlindly(options);
    const pass = this.#passNow();
    if (pass !== null) return pass;
    const asked = this.#asking.then(() => this.#askForProbe(options));
    this.#asking = asked.catch(() => {});
    return asked;
  }

  /** One at a time: who comes next may learn all it needs from this answer. */
  async #askForProbe(options: BreakerRunOptions): Promise<Pass> {
    const known = this.#passNow();
    if (known !== null) return known;
    const { store, clock } = this.#options;
    const probe = this.#unanswered ?? uuidv7();
    this.#unanswered = probe;
    let granted = false;
    const askedAtMs = clock.monotonic();
    const answer = await this.#copy.ask(async () => {
      const asked = await store.askForProbe(this.name, probe);
      granted = asked.granted;
      return asked.breaker;
    });
    if (answer === null) return this.#passBlindly(options);
    this.#unanswered = null;
    // Stopped for so long that the probe is somebody else's by now?
    const isLate = clock.monotonic() - askedAtMs >= answer.probeTimeoutSeconds * 1_000;
    if (!granted || isLate) return this.#passNow() ?? this.#refuse(patienceMs);
    const pass = { period: answer.period, probe };
    this.#probes.set(probe, pass);
    return pass;
  }

  /** PostgreSQL does not answer. What was closed stays closed, and what was open, open. */
  #passBlindly({ whenUnknown = "call" }: BreakerRunOptions): Pass {
    const machine = this.#copy.last?.machine;
    const mayBeClosed = machine === undefined || machine.state === "CLOSED";
    if (mayBeClosed && whenUnknown === "call") return { period: machine?.period ?? 0, probe: null };
    return this.#refuse(patienceMs);
  }

  #refuse(retryAfterMs: number): never {
    throw this.#refusal(retryAfterMs);
  }

  /** The first to be refused in a period comes back when the cool-down ends, to probe. */
  #refusal(retryAfterMs: number): BreakerOpenError {
    const { machine, stored } = this.#copy.last ?? {};
    const isFirst = machine?.state === "OPEN" && machine.period !== this.#volunteered;
    if (isFirst) this.#volunteered = machine.period;
    const seconds = stored?.returnSpreadSeconds ?? stored?.openCooldownSeconds ?? 0;
    return new BreakerOpenError(this.name, {
      retryAfterMs,
      spreadMs: isFirst ? 0 : seconds * 1_000,
    });
  }

  /** Whoever made it comes back among the others, so that it is not always the same one that probes. */
  #noteProbe(error: unknown, hasFailed: boolean): void {
    if (typeof error !== "object" || error === null) return;
    const { machine, stored } = this.#copy.last ?? {};
    if (!hasFailed || machine?.state === "CLOSED") {
      // Thrown before by a probe of ours; another breaker's mark is not ours to take away.
      if (failedProbes.get(error)?.breaker === this.name) failedProbes.delete(error);
      return;
    }
    const now = this.#options.clock.monotonic();
    const seconds = stored?.returnSpreadSeconds ?? stored?.openCooldownSeconds ?? 0;
    const retryAfterMs = (machine?.retryAtMs ?? now + patienceMs) - now;
    failedProbes.set(
      error,
      new BreakerOpenError(this.name, { retryAfterMs, spreadMs: seconds * 1_000 }),
    );
  }

  async #report(pass: Pass, verdict: Verdict, error: string | null): Promise<void> {
    if (this.#closed) return;
    if (pass.probe === null) return this.#reports.add(pass.period, verdict, error);
    if (!(await this.#tell(pass, verdict, error))) void this.#tellLater(pass, verdict, error);
  }

  async #tell(pass: Pass, verdict: Verdict, error: string | null): Promise<boolean> {
    const { store } = this.#options;
    const report = { ...pass, verdict, error };
    const answer = await this.#copy.ask(() => store.reportProbe(this.name, report));
    if (answer !== null) this.#probes.delete(pass.probe ?? "");
    return answer !== null;
  }

  /** A probe's answer is worth repeating; after its timeout nobody waits for it any more. */
  async #tellLater(pass: Pass, verdict: Verdict, error: string | null): Promise<void> {
    const { clock } = this.#options;
    const timeoutMs = (this.#copy.last?.stored.probeTimeoutSeconds ?? 0) * 1_000;
    const untilMs = clock.monotonic() + timeoutMs;
    while (!this.#closed && clock.monotonic() < untilMs) {
      await clock.sleep(patienceMs);
      if (await this.#tell(pass, verdict, error)) return;
    }
    this.#probes.delete(pass.probe ?? "");
  }

  #describe(error: unknown): string {
    return describeError(this.name, error, { class: "retryable" }).message;
  }
}
