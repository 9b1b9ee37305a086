// Who is signed in. A key is exchanged for an HttpOnly cookie and forgotten; a ticket in the address
// (`#ticket=…`, from `millrace dev`) is exchanged once and taken out of the address bar first.

import { type QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import type { Session } from "../api/agreed.ts";
import type { Role } from "../api/answers.ts";
import { codeOf, get, send } from "../api/service.ts";

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session | null> => {
    const ticket = takeTicket();
    if (ticket !== null) {
      const session = await orNobody(send<Session>("POST", "/api/session", { ticket }));
      if (session !== null) return session;
    }
    return orNobody(get<Session>("/api/session"));
  },
  staleTime: 60_000,
  retry: 2,
});

function takeTicket(): string | null {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket === null) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  return ticket;
}

async function orNobody(call: Promise<Session>): Promise<Session | null> {
  try {
    return await call;
  } catch (error) {
    if (codeOf(error) === "SERVICE_UNAVAILABLE") throw error;
    return null;
  }
}

/** Nothing that one person was shown is left for the next. */
function become(queries: QueryClient, session: Session | null): void {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
  queries.setQueryData(sessionQuery.queryKey, session);
}

export function useSignIn(): (key: string) => Promise<void> {
  const queries = useQueryClient();
  return async (key) => become(queries, await send<Session>("POST", "/api/session", { key }));
}

export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await send("DELETE", "/api/session").catch(() => {});
    become(queries, null);
  };
}

export const useSessionQuery = () => useQuery(sessionQuery);

const SessionContext = createContext<Session | null>(null);
export const SessionProvider = SessionContext.Provider;

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("Nobody is signed in.");
  return session;
}

const above: Record<Role, readonly Role[]> = {
  producer: ["producer"],
  robot: ["robot"],
  staff: ["staff", "manager", "admin"],
  manager: ["manager", "admin"],
  admin: ["admin"],
};

/** What the server would refuse is not offered; the server refuses it all the same. */
export const mayAct = (session: Session, ...roles: readonly Role[]): boolean =>
  roles.some((role) => above[role].includes(session.role));

export const useMay = (...roles: readonly Role[]): boolean => mayAct(useSession(), ...roles);
