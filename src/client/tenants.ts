// Tenants as an operator sees them: their share, their rate, whether they are paused. And waiting until
// nothing of a queue or tenant runs any more.

import { checkWait } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { FlowStore, Tenant, TenantSettings } from "../store/flow.ts";
import { checkName } from "../worker/job-definition.ts";
import type { Calls } from "./calls.ts";
import { checkTenantSettings } from "./queue-settings.ts";

export interface DrainWait {
  readonly timeoutMs?: number;
}

export interface TenantsOptions {
  readonly flow: FlowStore;
  readonly calls: Calls;
  readonly clock: Clock;
  /** Settings have changed: nobody in this process may go by old ones. */
  readonly changed: () => Promise<void>;
}

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
    checkName("tenant", name);
    checkTenantSettings(settings);
    return this.#change((flow) => flow.configureTenant(name, settings));
  }

  /** Its jobs are accepted and kept, and none of them starts. */
  async pause(name: string): Promise<Tenant> {
    checkName("tenant", name);
    return this.#change((flow) => flow.pauseTenant(name, true));
  }

  async resume(name: string): Promise<Tenant> {
    checkName("tenant", name);
    return this.#change((flow) => flow.pauseTenant(name, false));
  }

  /** Pauses it, and resolves when nothing of it runs any more. */
  async drain(name: string, wait: DrainWait = {}): Promise<Tenant> {
    const tenant = await this.pause(name);
    await this.untilNothingRuns({ tenant: name }, wait);
    return tenant;
  }

  async untilNothingRuns(
    of: { readonly queueId?: number; readonly tenant?: string },
    { timeoutMs = 60_000 }: DrainWait,
  ): Promise<void> {
    checkWait("timeoutMs", timeoutMs);
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
