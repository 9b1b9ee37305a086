import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useEffect, useMemo } from "react";
import { createRoot } from "react-dom/client";
import { codeOf } from "./api/service.ts";
import { Live } from "./live/live.ts";
import { LiveProvider } from "./live/use-live.ts";
import { ActionsProvider } from "./parts/actions.tsx";
import { Failure } from "./parts/page.tsx";
import { router } from "./router.tsx";
import { endSession, hasTicket, SessionProvider, useSessionQuery } from "./shell/session.ts";
import { SignIn } from "./shell/sign-in.tsx";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";
import "./style/forms.css";
import "./style/tables.css";

const queries: QueryClient = new QueryClient({
  defaultOptions: { queries: { retry: false, refetchOnWindowFocus: false } },
  queryCache: new QueryCache({
    // A session may end at any call; the page stays where it is, and asks for a key.
    onError: (error) => {
      if (codeOf(error) === "UNAUTHENTICATED") endSession(queries);
    },
  }),
});

// A link that signs in, opened where the page is open already: the browser changes the address only.
addEventListener("hashchange", () => {
  if (hasTicket()) location.reload();
});

function App() {
  const { data: session, error } = useSessionQuery();
  if (session === undefined)
    return error === null ? (
      <p className="sign-in soft" role="status">
        Loading…
      </p>
    ) : (
      <main className="sign-in">
        <Failure error={error} />
      </main>
    );
  if ("nobody" in session) return <SignIn why={session.nobody} />;
  return (
    <SessionProvider value={session}>
      <Connected />
    </SessionProvider>
  );
}

function Connected() {
  const live = useMemo(() => new Live(queries), []);
  useEffect(() => live.start(), [live]);
  return (
    <LiveProvider value={live}>
      <ActionsProvider>
        <RouterProvider router={router} />
      </ActionsProvider>
    </LiveProvider>
  );
}

const place = document.getElementById("app");
if (place !== null)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
