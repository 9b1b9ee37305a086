// Addresses. They hold the whole view: what is searched for, sorted by and looked at. Pages other than
// the first are fetched when they are first wanted.

import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import { NotFound } from "./pages/not-found.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { Shell } from "./shell/shell.tsx";

type Search = Readonly<Record<string, string | undefined>>;

/** Keeps the named parameters, as text; anything else in the address is not looked at. */
const keep =
  <const N extends string>(...names: readonly N[]) =>
  (search: Record<string, unknown>): { readonly [K in N]?: string } =>
    Object.fromEntries(
      names
        .filter((name) => typeof search[name] === "string" && search[name] !== "")
        .map((name) => [name, String(search[name])]),
    ) as { readonly [K in N]?: string };

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });
const under = () => root;

const overview = createRoute({ getParentRoute: under, path: "/", component: OverviewPage });

const jobs = createRoute({
  getParentRoute: under,
  path: "/jobs",
  validateSearch: keep("state", "queue", "type", "tenant", "by", "find", "since", "cursor"),
  component: lazyRouteComponent(() => import("./pages/jobs.tsx"), "JobsPage"),
});

const job = createRoute({
  getParentRoute: under,
  path: "/jobs/$id",
  component: lazyRouteComponent(() => import("./pages/job.tsx"), "JobPage"),
});

const deadLetters = createRoute({
  getParentRoute: under,
  path: "/dead-letters",
  validateSearch: keep("status", "fingerprint", "queue", "type", "class", "tenant", "cursor"),
  component: lazyRouteComponent(() => import("./pages/dead-letters.tsx"), "DeadLettersPage"),
});

const queues = createRoute({
  getParentRoute: under,
  path: "/queues",
  validateSearch: keep("find", "sort"),
  component: lazyRouteComponent(() => import("./pages/queues.tsx"), "QueuesPage"),
});

const queue = createRoute({
  getParentRoute: under,
  path: "/queues/$id",
  component: lazyRouteComponent(() => import("./pages/queue.tsx"), "QueuePage"),
});

const triggers = createRoute({
  getParentRoute: under,
  path: "/triggers",
  validateSearch: keep("type", "sort"),
  component: lazyRouteComponent(() => import("./pages/triggers.tsx"), "TriggersPage"),
});

const trigger = createRoute({
  getParentRoute: under,
  path: "/triggers/$id",
  component: lazyRouteComponent(() => import("./pages/trigger.tsx"), "TriggerPage"),
});

const breakers = createRoute({
  getParentRoute: under,
  path: "/breakers",
  component: lazyRouteComponent(() => import("./pages/breakers.tsx"), "BreakersPage"),
});

const workers = createRoute({
  getParentRoute: under,
  path: "/workers",
  validateSearch: keep("sort"),
  component: lazyRouteComponent(() => import("./pages/workers.tsx"), "WorkersPage"),
});

const tenants = createRoute({
  getParentRoute: under,
  path: "/tenants",
  validateSearch: keep("cursor"),
  component: lazyRouteComponent(() => import("./pages/tenants.tsx"), "TenantsPage"),
});

const audit = createRoute({
  getParentRoute: under,
  path: "/audit",
  validateSearch: keep("action", "target", "tenant"),
  component: lazyRouteComponent(() => import("./pages/audit.tsx"), "AuditPage"),
});

const health = createRoute({
  getParentRoute: under,
  path: "/health",
  component: lazyRouteComponent(() => import("./pages/health.tsx"), "HealthPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    jobs,
    job,
    deadLetters,
    queues,
    queue,
    triggers,
    trigger,
    breakers,
    workers,
    tenants,
    audit,
    health,
  ]),
  defaultPreload: "intent",
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search as Search).filter(([, value]) => value);
    const text = new URLSearchParams(given as [string, string][]).toString();
    return text === "" ? "" : `?${text}`;
  },
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
