// Tenants as an operator sees them: their share, their rate, whether they are paused. And waiting until
// nothing of a queue or tenant runs any more.

import { checkOptions, checkWait, type Known, knownNames } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { FlowStore, Tenant, TenantSettings } from "../store/flow.ts";
import type { Calls } from "./calls.ts";
import { checkNameOf } from "./check-calls.ts";
import { checkTenantSettings } from "./queue-settings.ts";

export interface DrainWait {
  readonly timeoutMs?: number;
}

const known = knownNames({ timeoutMs: true } satisfies Known<DrainWait>);

function checkDrain(wait: DrainWait): void {
  checkOptions("a drain", wait, known);
  checkWait("timeoutMs", wait.timeoutMs);
}

export interface TenantsOptions {
  readonly flow: FlowStore;
  readonly calls: Calls;
  readonly clock: Clock;
  /** Settings have changed: nobody in this process may go by old ones. */
  readonly changed: () => Promise<void>;
}

/** Whose jobs are waited for. */
type Owner = Parameters<FlowStore["running"]>[0];

const askEveryMs = 50;

export class Tenants {
  readonly #options: TenantsOptions;

  constructor(options: TenantsOptions) {
    this.#options = options;
  }

  /** Those that have settings of their own. */
  list(): Promise<Tenant[]> {
    const { calls, flow } = this.#options;
    return calls.track(() => flow.tenants());
  }

  async configure(name: string, settings: TenantSettings): Promise<Tenant> {
    checkNameOf("tenant", name);
    checkTenantSettings(settings);
    return this.#change((flow) => flow.configureTenant(name, settings));
  }

  /** Its jobs are accepted and kept, and none of them starts. It need not have any yet. */
  async pause(name: string): Promise<Tenant> {
    checkNameOf("tenant", name);
    return this.#change((flow) => flow.pauseTenant(name, true));
  }

  async resume(name: string): Promise<Tenant> {
    checkNameOf("tenant", name);
    return this.#change((flow) => flow.pauseTenant(name, false));
  }

  /** Pauses it, and resolves when nothing of it runs any more. */
  async drain(name: string, wait: DrainWait = {}): Promise<Tenant> {
    return this.drained(
      wait,
      () => this.pause(name),
      () => ({ tenant: name }),
    );
  }

  /** Pauses what is to be drained, once the wait is one that makes sense, and waits. */
  async drained<T>(
    wait: DrainWait,
    pause: () => Promise<T>,
    whose: (paused: T) => Owner,
  ): Promise<T> {
    checkDrain(wait);
    const paused = await pause();
    await this.#untilNothingRuns(whose(paused), wait);
    return paused;
  }

  async #untilNothingRuns(of: Owner, { timeoutMs = 60_000 }: DrainWait): Promise<void> {
    const { calls, flow, clock } = this.#options;
    const deadline = clock.monotonic() + timeoutMs;
    for (;;) {
      const running = await calls.track(() => flow.running(of));
      if (running === 0) return;
      if (clock.monotonic() >= deadline) {
        const details = { running };
        throw new MillraceError("TIMEOUT", `${running} jobs are still running.`, { details });
      }
      await clock.sleep(askEveryMs);
    }
  }

  async #change(act: (flow: FlowStore) => Promise<Tenant>): Promise<Tenant> {
    const { calls, flow, changed } = this.#options;
    const tenant = await calls.track(() => act(flow));
    await changed();
    return tenant;
  }
}
