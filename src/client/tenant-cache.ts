import type { Clock } from "../runtime/clock.ts";
import type { FlowStore, Tenant } from "../store/flow.ts";

const freshMs = 5_000;

/**
 * The tenants that have settings of their own, five seconds old at most. Whoever keeps asking has them
 * read again before they are that old; after a change, or a rest, the next one waits for them.
 */
export class TenantCache {
  readonly #flow: FlowStore;
  readonly #clock: Clock;
  #tenants: ReadonlyMap<string, Tenant> | null = null;
  #askedAt = Number.NEGATIVE_INFINITY;
  #changes = 0;
  #reads = 0;
  #loading: Promise<void> | null = null;

  constructor(flow: FlowStore, clock: Clock) {
    this.#flow = flow;
    this.#clock = clock;
  }

  /** May they be gone by? If not, they are to be loaded first. */
  get isLoaded(): boolean {
    if (this.#tenants === null) return false;
    const age = this.#clock.monotonic() - this.#askedAt;
    if (age > freshMs / 2) void this.load().catch(() => {});
    return age <= freshMs;
  }

  /** As long as this is the same, so is what is known. */
  get changes(): number {
    return this.#changes + this.#reads;
  }

  /** From then on they are to be read again. */
  get freshUntil(): number {
    return this.#askedAt + freshMs / 2;
  }

  /** As they were when somebody last asked whether they are loaded. */
  known(name: string): Tenant | undefined {
    return this.#tenants?.get(name);
  }

  load(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    for (;;) {
      const changes = this.#changes;
      const askedAt = this.#clock.monotonic();
      const tenants = await this.#flow.tenants();
      // What was read while somebody changed them may be from before that.
      if (changes !== this.#changes) continue;
      this.#tenants = new Map(tenants.map((tenant) => [tenant.name, tenant]));
      this.#askedAt = askedAt;
      this.#reads++;
      return;
    }
  }

  /** Somebody changed a tenant: nobody goes by what was read before. */
  invalidate(): void {
    this.#changes++;
    this.#askedAt = Number.NEGATIVE_INFINITY;
  }
}
