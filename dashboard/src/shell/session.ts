// Who is signed in, or why nobody is. A key is exchanged for an HttpOnly cookie and forgotten; a ticket in the address
// (`#ticket=…`, from `millrace dev`) is exchanged once and taken out of the address bar first.

import { type QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import type { Session } from "../api/agreed.ts";
import type { Role } from "../api/answers.ts";
import { codeOf, get, send } from "../api/service.ts";

/** Nobody is signed in: a first visit, a link that is no good, a session that is over, or a farewell. */
export interface Nobody {
  readonly nobody: "new" | "link" | "ended" | "left";
}

const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session | Nobody> => {
    const ticket = takeTicket();
    const session =
      (ticket === null ? null : await orNull(send<Session>("POST", "/api/session", { ticket }))) ??
      (await orNull(get<Session>("/api/session")));
    if (session === null)
      return { nobody: ticket !== null ? "link" : wasHere.read() ? "ended" : "new" };
    wasHere.write(true);
    return session;
  },
  staleTime: 60_000,
  retry: 2,
});

/** That somebody was signed in here, and has not signed out. Who, only the cookie says. */
const wasHere = {
  place: "millrace.signed-in",
  read(): boolean {
    try {
      return localStorage.getItem(wasHere.place) !== null;
    } catch {
      return false;
    }
  },
  write(isHere: boolean): void {
    try {
      if (isHere) localStorage.setItem(wasHere.place, "yes");
      else localStorage.removeItem(wasHere.place);
    } catch {
      // Then nobody is told that a session has ended.
    }
  },
};

const readTicket = () => new URLSearchParams(location.hash.slice(1)).get("ticket");

export const hasTicket = (): boolean => readTicket() !== null;

function takeTicket(): string | null {
  const ticket = readTicket();
  if (ticket === null) return null;
  history.replaceState(history.state, "", location.pathname + location.search);
  return ticket;
}

async function orNull(call: Promise<Session>): Promise<Session | null> {
  try {
    return await call;
  } catch (error) {
    if (codeOf(error) === "SERVICE_UNAVAILABLE") throw error;
    return null;
  }
}

/** Nothing that one person was shown is left for the next. */
function become(queries: QueryClient, session: Session | Nobody): void {
  wasHere.write(!("nobody" in session));
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
  queries.setQueryData(sessionQuery.queryKey, session);
}

/** The service knows it no more. Whoever has left already was not sent away. */
export function endSession(queries: QueryClient): void {
  queries.setQueryData(sessionQuery.queryKey, (before: Session | Nobody | undefined) =>
    before !== undefined && "nobody" in before ? before : ended,
  );
}

const ended: Session | Nobody = { nobody: "ended" };

export function useSignIn(): (key: string) => Promise<void> {
  const queries = useQueryClient();
  return async (key) => become(queries, await send<Session>("POST", "/api/session", { key }));
}

export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await send("DELETE", "/api/session").catch(() => {});
    become(queries, { nobody: "left" });
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
