import type { Clock } from "../runtime/clock.ts";
import type { FlowStore, Tenant } from "../store/flow.ts";

const freshMs = 5_000;

/** The tenants that have settings of their own, a few seconds old at most. */
export class TenantCache {
  readonly #flow: FlowStore;
  readonly #clock: Clock;
  #tenants: ReadonlyMap<string, Tenant> | null = null;
  #readAt = 0;
  #loading: Promise<void> | null = null;

  constructor(flow: FlowStore, clock: Clock) {
    this.#flow = flow;
    this.#clock = clock;
  }

  get isLoaded(): boolean {
    return this.#tenants !== null;
  }

  known(name: string): Tenant | undefined {
    if (this.#clock.monotonic() - this.#readAt > freshMs) {
      this.#readAt = this.#clock.monotonic();
      void this.load().catch(() => {});
    }
    return this.#tenants?.get(name);
  }

  load(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    const tenants = await this.#flow.tenants();
    this.#tenants = new Map(tenants.map((tenant) => [tenant.name, tenant]));
    this.#readAt = this.#clock.monotonic();
  }

  /** Somebody changed a tenant: read again on next use. */
  invalidate(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }
}
