// Tenants over HTTP.

import type { Tenant, TenantSettings } from "../../store/flow.ts";
import { type HttpCaller, pause } from "./caller.ts";

export interface ErasedTenant {
  readonly waiting: number;
  readonly deadLetters: number;
  readonly history: number;
}

type Wire = Record<string, unknown>;

interface Page {
  readonly tenants: Wire[];
  readonly next_cursor: string | null;
}

interface ErasureWire {
  readonly done: boolean;
  readonly erased: { waiting: number; dead_letters: number; history: number };
  readonly next_cursor: string | null;
}

function toTenant(wire: Wire): Tenant {
  const rate = wire.rate_limit as { limit: number; window_ms: number } | null;
  return {
    name: String(wire.tenant_id),
    weight: Number(wire.weight),
    rateLimit: rate === null ? null : { limit: rate.limit, windowMs: rate.window_ms },
    capacity: wire.capacity as number | null,
    warnDepth: wire.warn_depth as number | null,
    paused: wire.paused === true,
  };
}

function toWire({ weight, rateLimit, capacity, warnDepth }: TenantSettings): Wire {
  const rate =
    rateLimit === undefined || rateLimit === null
      ? rateLimit
      : { limit: rateLimit.limit, window_ms: rateLimit.windowMs };
  return {
    ...(weight === undefined ? {} : { weight }),
    ...(rate === undefined ? {} : { rate_limit: rate }),
    ...(capacity === undefined ? {} : { capacity }),
    ...(warnDepth === undefined ? {} : { warn_depth: warnDepth }),
  };
}

const askEveryMs = 500;

export class RemoteTenants {
  readonly #caller: HttpCaller;

  constructor(caller: HttpCaller) {
    this.#caller = caller;
  }

  /** Everybody who has jobs, queues, keys or settings. */
  async list(): Promise<Tenant[]> {
    const tenants: Tenant[] = [];
    for (let cursor: string | undefined; ; ) {
      const query = { limit: 200, cursor };
      const page: Page = await this.#caller.call<Page>("GET", "/api/tenants", { query });
      tenants.push(...page.tenants.map(toTenant));
      if (page.next_cursor === null) return tenants;
      cursor = page.next_cursor;
    }
  }

  async configure(name: string, settings: TenantSettings): Promise<Tenant> {
    const body = toWire(settings);
    return toTenant(await this.#caller.call<Wire>("PUT", pathOf(name), { body }));
  }

  async pause(name: string): Promise<Tenant> {
    return toTenant(await this.#caller.call<Wire>("POST", `${pathOf(name)}/pause`));
  }

  async resume(name: string): Promise<Tenant> {
    return toTenant(await this.#caller.call<Wire>("POST", `${pathOf(name)}/resume`));
  }

  /** Calls until nothing is left, and waits for what runs: a signal ends the waiting. */
  async erase(
    name: string,
    reason: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<ErasedTenant> {
    const all = { waiting: 0, deadLetters: 0, history: 0 };
    for (let cursor: string | undefined; ; ) {
      const query = { confirm: name, notes: reason, cursor };
      const part = await this.#caller.call<ErasureWire>("DELETE", pathOf(name), { query, signal });
      all.waiting += part.erased.waiting;
      all.deadLetters += part.erased.dead_letters;
      all.history += part.erased.history;
      if (part.done) return all;
      cursor = part.next_cursor ?? undefined;
      if (cursor === undefined) await pause(askEveryMs, signal);
    }
  }
}

const pathOf = (name: string) => `/api/tenants/${encodeURIComponent(name)}`;
