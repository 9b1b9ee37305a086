// The frame around every page: navigation, who is signed in, and whether what is shown is live.

import { useQuery } from "@tanstack/react-query";
import { Link, Navigate, Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { deadLetterStatistics } from "../api/queries.ts";
import { useLive } from "../live/use-live.ts";
import { short } from "../parts/words.ts";
import { HelpSheet } from "./help.tsx";
import { Logo } from "./logo.tsx";
import { type PageEntry, pagesFor } from "./pages.ts";
import { mayAct, useSession, useSignOut } from "./session.ts";
import { useShortcuts } from "./shortcuts.ts";
import { nextTheme, setTheme, useTheme } from "./theme.ts";

const liveWords = { live: "Live", polling: "Every 5 s", paused: "Paused" } as const;

export function Shell() {
  const session = useSession();
  const pages = useMemo(() => pagesFor(session), [session]);
  const [isHelping, setHelping] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const theme = useTheme();
  const { toggle } = useLive();
  const act = useMemo(
    () => ({
      help: () => setHelping(true),
      theme: () => setTheme(nextTheme(theme)),
      pause: toggle,
    }),
    [theme, toggle],
  );
  useShortcuts(pages, act);
  const main = useFocusOnChange(() => setOpen(false));
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <div className="top">
        <Brand />
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls="side"
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </div>
      <div className="shell">
        <div className="side" id="side" data-open={isOpen}>
          <Brand />
          <Nav pages={pages} onGo={() => setOpen(false)} />
          <SideFooter onHelp={act.help} onTheme={act.theme} />
        </div>
        <main id="main" tabIndex={-1} ref={main}>
          <Inside pages={pages} />
        </main>
      </div>
      {isHelping ? <HelpSheet pages={pages} onClose={() => setHelping(false)} /> : null}
    </>
  );
}

/** The front page is not everybody's: others begin with the first page they may see. */
function Inside({ pages }: { pages: readonly PageEntry[] }) {
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [first] = pages;
  if (first === undefined)
    return (
      <p className="note-box">
        This key is for programs, and has nothing to see here. Sign in with the key of a person.
      </p>
    );
  return path === "/" && first.path !== "/" ? <Navigate to={first.path} replace /> : <Outlet />;
}

/** A new page begins at its top, for eyes and for readers alike. */
function useFocusOnChange(onChange: () => void) {
  const main = useRef<HTMLElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current === path) return;
    shown.current = path;
    onChange();
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  });
  return main;
}

const Brand = () => (
  <Link to="/" className="brand">
    <Logo /> Millrace
  </Link>
);

const groups = ["Work", "Flow", "System"] as const;

function Nav({ pages, onGo }: { pages: readonly PageEntry[]; onGo: () => void }) {
  const session = useSession();
  const { data } = useQuery({
    ...deadLetterStatistics(),
    enabled: mayAct(session, "manager"),
  });
  const waiting = data?.by_status.pending_review ?? 0;
  return (
    <nav aria-label="Pages">
      {groups.map((group) => {
        const own = pages.filter((page) => page.group === group);
        if (own.length === 0) return null;
        return (
          <div key={group}>
            <h2>{group}</h2>
            <div className="nav">
              {own.map(({ path, title }) => (
                <Link key={path} to={path} activeOptions={{ exact: path === "/" }} onClick={onGo}>
                  {title}
                  {path === "/dead-letters" && waiting > 0 ? (
                    <span className="count">{short(waiting)}</span>
                  ) : null}
                </Link>
              ))}
            </div>
          </div>
        );
      })}
    </nav>
  );
}

function SideFooter({ onHelp, onTheme }: { onHelp: () => void; onTheme: () => void }) {
  const session = useSession();
  const signOut = useSignOut();
  const theme = useTheme();
  const { status, toggle } = useLive();
  return (
    <footer>
      <button
        type="button"
        className="quiet live"
        data-status={status}
        aria-pressed={status === "paused"}
        onClick={toggle}
        title="Pause or resume live updates (p)"
      >
        <i aria-hidden="true" />
        {liveWords[status]}
      </button>
      <div className="who">
        <strong>{session.name}</strong>
        {session.role}
        {session.tenant === null ? ", all tenants" : `, tenant ${session.tenant}`}
      </div>
      <button type="button" className="quiet" onClick={onTheme} title="Colours (s)">
        Colours: {theme === "system" ? "as the system" : theme}
      </button>
      <div className="row">
        <button type="button" className="quiet" onClick={onHelp}>
          Keys <kbd>?</kbd>
        </button>
        <button type="button" className="quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </footer>
  );
}
