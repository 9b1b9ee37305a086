import { verifyAudit } from "../../client/audit.ts";
import { MillraceError } from "../../domain/errors.ts";
import { uuidv7 } from "../../runtime/uuid.ts";
import type { ApiKey } from "../../store/api-key.ts";
import { hashOf, keyText, newSecret } from "../api-key-text.ts";
import * as contract from "../contract/system.ts";
import { type Identity, maySee, tenantToRead } from "../identity.ts";
import { numberShape, pageById, readCursor, writeCursor } from "../input.ts";
import { problemAt } from "../problem.ts";
import { type Served, type Service, serve } from "../served.ts";
import { auditView, keyView } from "../views.ts";

const readiness = serve(contract.readReadiness, async (_, { store }) => {
  try {
    const { inOffice } = await store.leadership();
    const leader = inOffice ? "in_office" : "vacant";
    const body = { status: "ready", parts: { postgres: "ok", leader } } as const;
    return { status: 200 as const, body };
  } catch {
    const parts = { postgres: "unreachable", leader: "unknown" } as const;
    const body = { status: "not_ready", parts } as const;
    return { status: 503 as const, body };
  }
});

async function findKey(id: string, identity: Identity, { store }: Service): Promise<ApiKey> {
  const key = await store.service.readsOf(identity.tenant).keys.find(id);
  // A key of all tenants is no business of one of them.
  if (key === null || (identity.tenant !== null && !maySee(identity, key.tenant ?? "")))
    throw new MillraceError("API_KEY_NOT_FOUND");
  return key;
}

const createKey = serve(contract.createKey, async ({ body, identity }, { store, clock }) => {
  if (body.expires_at !== undefined && +new Date(body.expires_at) <= +clock.now())
    throw problemAt("body.expires_at", "it is in the past");
  const id = uuidv7();
  const secret = newSecret();
  const key = await store.service.keys.create(
    {
      id,
      name: body.name,
      role: body.role,
      tenant: tenantToRead(identity, body.tenant_id) ?? null,
      secretHash: hashOf(secret),
      rateLimit: body.rate_limit ?? null,
      expiresAt: body.expires_at === undefined ? null : new Date(body.expires_at),
    },
    identity.actor,
  );
  return { status: 201 as const, body: { ...keyView(key), key: keyText({ id, secret }) } };
});

const rotateKey = serve(contract.rotateKey, async ({ params, body, identity }, service) => {
  const { id } = await findKey(params.id, identity, service);
  const secret = newSecret();
  const overlapMs = (body?.overlap_seconds ?? 86_400) * 1_000;
  const { keys } = service.store.service;
  const key = await keys.rotate(id, hashOf(secret), overlapMs, identity.actor);
  if (key === null) throw new MillraceError("API_KEY_NOT_FOUND");
  service.identities.forget(id);
  return { status: 200 as const, body: { ...keyView(key), key: keyText({ id, secret }) } };
});

const revokeKey = serve(contract.revokeKey, async ({ params, identity }, service) => {
  const { id } = await findKey(params.id, identity, service);
  const key = await service.store.service.keys.revoke(id, identity.actor);
  if (key === null) throw new MillraceError("API_KEY_NOT_FOUND");
  service.identities.forget(id);
  return { status: 200 as const, body: keyView(key) };
});

const listAudit = serve(contract.listAudit, async ({ query, identity }, { store }) => {
  const { action, target, limit } = query;
  const tenant = tenantToRead(identity, query.tenant_id);
  const [before] = readCursor("audit", [numberShape], query.cursor) ?? [];
  const entries = await store.service
    .readsOf(identity.tenant)
    .audit.list(
      { tenant, action, target },
      before === undefined ? null : Number(before),
      limit + 1,
    );
  const shown = entries.slice(0, limit);
  const last = entries.length > limit ? shown.at(-1) : undefined;
  return {
    status: 200 as const,
    body: {
      entries: shown.map(auditView),
      next_cursor: last === undefined ? null : writeCursor("audit", String(last.no)),
    },
  };
});

const verify = serve(contract.verifyAudit, async ({ identity }, { store }) => {
  if (identity.tenant !== null)
    throw new MillraceError(
      "TENANT_FORBIDDEN",
      "The chain runs through all tenants; this takes a key without a tenant.",
    );
  const { ok, entries, head, brokenAt, problem } = await verifyAudit(store.service.audit);
  return { status: 200 as const, body: { ok, entries, head, broken_at: brokenAt, problem } };
});

export const systemRoutes: readonly Served[] = [
  serve(contract.readHealth, async () => ({
    status: 200 as const,
    body: { status: "ok" as const },
  })),
  readiness,
  serve(contract.readOpenApi, async (_, { openApi }) => ({ status: 200 as const, body: openApi })),
  serve(contract.listKeys, async ({ query, identity }, { store }) => {
    const keys = await store.service.readsOf(identity.tenant).keys.list(identity.tenant);
    const { shown, next_cursor } = pageById("keys", keys, query);
    return { status: 200 as const, body: { keys: shown.map(keyView), next_cursor } };
  }),
  createKey,
  serve(contract.readKey, async ({ params, identity }, service) => ({
    status: 200 as const,
    body: keyView(await findKey(params.id, identity, service)),
  })),
  rotateKey,
  revokeKey,
  listAudit,
  verify,
];
