import { MillraceError } from "../../domain/errors.ts";
import type { Tenant } from "../../store/flow.ts";
import type { ErasePlace } from "../../store/tenant-admin.ts";
import { hashOf } from "../api-key-text.ts";
import * as contract from "../contract/tenants.ts";
import { type Identity, maySee } from "../identity.ts";
import { readCursor, uuidShape, writeCursor } from "../input.ts";
import { type Served, type Service, serve } from "../served.ts";

const usual = { weight: 1, rateLimit: null, capacity: null, warnDepth: null, paused: false };

const tenantView = (name: string, settings: Omit<Tenant, "name"> = usual) => ({
  tenant_id: name,
  weight: settings.weight,
  rate_limit:
    settings.rateLimit === null
      ? null
      : { limit: settings.rateLimit.limit, window_ms: settings.rateLimit.windowMs },
  capacity: settings.capacity,
  warn_depth: settings.warnDepth,
  paused: settings.paused,
});

const settingsOf = async ({ millrace }: Service): Promise<Map<string, Tenant>> =>
  new Map((await millrace.tenants.list()).map((tenant) => [tenant.name, tenant]));

const answer = (tenant: Tenant) => ({
  status: 200 as const,
  body: tenantView(tenant.name, tenant),
});

const list = serve(contract.listTenants, async ({ query, identity }, service) => {
  const [after = ""] = readCursor("tenants", [/^.{1,200}$/su], query.cursor) ?? [];
  const { tenant } = identity;
  const names =
    tenant === null
      ? await service.store.service.tenants.names(after, query.limit + 1)
      : [tenant].filter((own) => own > after);
  const shown = names.slice(0, query.limit);
  const last = names.length > shown.length ? shown.at(-1) : undefined;
  const settings = await settingsOf(service);
  return {
    status: 200 as const,
    body: {
      tenants: shown.map((name) => tenantView(name, settings.get(name))),
      next_cursor: last === undefined ? null : writeCursor("tenants", last),
    },
  };
});

const read = serve(contract.readTenant, async ({ params, identity }, service) => {
  const isThere =
    maySee(identity, params.id) && (await service.store.service.tenants.isKnown(params.id));
  if (!isThere) throw new MillraceError("TENANT_NOT_FOUND");
  const settings = (await settingsOf(service)).get(params.id);
  return { status: 200 as const, body: tenantView(params.id, settings) };
});

/** Others are not there for a key of a tenant, and its own is not its own to change. */
function mayChange(identity: Identity, name: string): void {
  if (!maySee(identity, name)) throw new MillraceError("TENANT_NOT_FOUND");
  if (identity.tenant !== null)
    throw new MillraceError("TENANT_FORBIDDEN", "This takes a key without a tenant.");
}

const update = serve(contract.updateTenant, async ({ params, body, identity }, service) => {
  mayChange(identity, params.id);
  const { weight, rate_limit, capacity, warn_depth: warnDepth } = body;
  const rateLimit =
    rate_limit === null || rate_limit === undefined
      ? rate_limit
      : { limit: rate_limit.limit, windowMs: rate_limit.window_ms };
  const tenant = await service.millrace.tenants.configure(params.id, {
    ...(weight === undefined ? {} : { weight }),
    ...(rateLimit === undefined ? {} : { rateLimit }),
    ...(capacity === undefined ? {} : { capacity }),
    ...(warnDepth === undefined ? {} : { warnDepth }),
  });
  await note("tenant_update", tenant.name, identity, service, { details: body });
  return answer(tenant);
});

async function note(
  action: string,
  tenant: string,
  { actor }: Identity,
  { store }: Service,
  more: { reason?: string; details?: unknown } = {},
): Promise<void> {
  await store.service.audit.add({ tenant, actor, action, target: tenant, ...more });
}

async function mustBeKnown(name: string, { store }: Service): Promise<void> {
  if (!(await store.service.tenants.isKnown(name))) throw new MillraceError("TENANT_NOT_FOUND");
}

const setPaused = async (name: string, paused: boolean, identity: Identity, service: Service) => {
  mayChange(identity, name);
  await mustBeKnown(name, service);
  const { tenants } = service.millrace;
  const tenant = paused ? await tenants.pause(name) : await tenants.resume(name);
  await note(paused ? "tenant_pause" : "tenant_resume", name, identity, service);
  return answer(tenant);
};

/** How far a pass has come. One that found nothing running at its start has seen everything. */
interface Pass {
  readonly running: number;
  /** null: things of the tenant may still wait. */
  readonly place: ErasePlace | null;
}

const listName = "erasure";
const shapes = [/^[0-9a-f]{64}$/, /^\d{1,6}$/, /^(waiting|dead_job|history)$/, uuidShape];
const ownerOf = (tenant: string) => hashOf(tenant).toString("hex");
const nowhere = "00000000-0000-0000-0000-000000000000";

function passOf(tenant: string, cursor: string | undefined): Pass | null {
  const [owner, running, table, after] = readCursor(listName, shapes, cursor) ?? [];
  if (owner === undefined || after === undefined) return null;
  if (owner !== ownerOf(tenant)) throw new MillraceError("CURSOR_INVALID");
  if (table === "waiting") return { running: 0, place: null };
  return { running: Number(running), place: { table: table as ErasePlace["table"], after } };
}

const cursorOf = (tenant: string, { running, place }: Pass): string =>
  writeCursor(
    ...([listName, ownerOf(tenant), String(running)] as const),
    ...[place?.table ?? "waiting", place?.after ?? nowhere],
  );

const mostAtOnce = 10_000;

/** From here on nothing of the tenant starts: what waits goes, and what runs is asked to stop. */
async function quiet(tenant: string, { store, millrace }: Service) {
  const { tenants } = store.service;
  await millrace.tenants.pause(tenant);
  for (const { id } of await millrace.triggers.list({ tenant }, mostAtOnce))
    await millrace.triggers.delete(id);
  const { gone, isAll } = await tenants.eraseWaiting(tenant);
  const running = isAll ? await tenants.running(tenant, mostAtOnce) : [];
  for (const id of running) await millrace.cancel(id);
  return { waiting: gone, isQuiet: isAll, running: running.length };
}

const erase = serve(contract.eraseTenant, async ({ params, query, identity }, service) => {
  const { id } = params;
  await checkErasure(id, query.confirm, identity, service);
  const going = passOf(id, query.cursor);
  const reason = query.notes;
  if (going === null) await note("tenant_erase_requested", id, identity, service, { reason });
  const start = going?.place ?? null;
  const quieted = start === null ? await quiet(id, service) : null;
  const { waiting = 0, isQuiet = true, running = going?.running ?? 0 } = quieted ?? {};
  const erased = { waiting, dead_letters: 0, history: 0 };
  const more = (next: Pass | null) => {
    const next_cursor = next === null ? null : cursorOf(id, next);
    return {
      status: 202 as const,
      body: { tenant_id: id, done: false, running, erased, next_cursor },
    };
  };
  if (!isQuiet) return more({ running, place: null });
  const ended = await service.store.service.tenants.eraseEnded(id, start);
  erased.dead_letters = ended.deadLetters;
  erased.history = ended.history;
  if (ended.next !== null) return more({ running, place: ended.next });
  if (running > 0) return more(null);
  await note("tenant_erase_success", id, identity, service, { reason, details: { erased } });
  const body = { tenant_id: id, done: true, running, erased, next_cursor: null };
  return { status: 200 as const, body };
});

async function checkErasure(
  name: string,
  confirmed: string,
  identity: Identity,
  service: Service,
): Promise<void> {
  mayChange(identity, name);
  await mustBeKnown(name, service);
  if (confirmed !== name) throw new MillraceError("CONFIRMATION_MISMATCH");
}

export const tenantRoutes: readonly Served[] = [
  list,
  read,
  update,
  serve(contract.pauseTenant, ({ params, identity }, service) =>
    setPaused(params.id, true, identity, service),
  ),
  serve(contract.resumeTenant, ({ params, identity }, service) =>
    setPaused(params.id, false, identity, service),
  ),
  erase,
];
