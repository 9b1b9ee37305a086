import * as contract from "../contract/session.ts";
import { noSessionCookie, sessionCookie } from "../cookie.ts";
import type { Identity } from "../identity.ts";
import { type Served, serve } from "../served.ts";

const view = ({ name, role, tenant }: Identity, expiresAt: Date | undefined) => ({
  name,
  role,
  tenant,
  expires_at: expiresAt?.toISOString() ?? null,
});

const signIn = serve(contract.createSession, async ({ body, arrival }, { caller, clock }) => {
  const { id, identity, expiresAt } = await caller.signIn(body, arrival);
  const seconds = Math.floor((expiresAt.getTime() - clock.now().getTime()) / 1_000);
  return {
    status: 200 as const,
    body: view(identity, expiresAt),
    headers: { "set-cookie": sessionCookie(id, Math.max(seconds, 1), arrival.isSecure) },
  };
});

const signOut = serve(contract.deleteSession, async ({ session, arrival }, { sessions }) => {
  if (session !== null) await sessions.end(session);
  return {
    status: 204 as const,
    headers: { "set-cookie": noSessionCookie(arrival.isSecure) },
  };
});

export const sessionRoutes: readonly Served[] = [
  signIn,
  serve(contract.readSession, async ({ identity, session }) => ({
    status: 200 as const,
    body: view(identity, session?.expiresAt),
  })),
  signOut,
];
