// The pages: where they are, who sees them, and the key that leads there.

import type { Session } from "../api/agreed.ts";
import type { Role } from "../api/answers.ts";
import { mayAct } from "./session.ts";

export interface PageEntry {
  readonly path: string;
  readonly title: string;
  readonly group: "Work" | "Flow" | "System";
  /** After `g`. */
  readonly key: string;
  readonly roles: readonly Role[];
  /** What all tenants share is for keys of all tenants. */
  readonly sharedOnly?: boolean;
}

const pages: readonly PageEntry[] = [
  { path: "/", title: "Overview", group: "Work", key: "o", roles: ["staff"] },
  { path: "/jobs", title: "Jobs", group: "Work", key: "j", roles: ["staff", "producer"] },
  {
    ...{ path: "/dead-letters", title: "Dead letters", group: "Work", key: "d" },
    roles: ["manager"],
  },
  { path: "/queues", title: "Queues", group: "Flow", key: "q", roles: ["staff"] },
  { path: "/triggers", title: "Triggers", group: "Flow", key: "t", roles: ["staff"] },
  {
    ...{ path: "/breakers", title: "Breakers", group: "Flow", key: "b" },
    ...{ roles: ["staff"], sharedOnly: true },
  },
  {
    ...{ path: "/workers", title: "Workers and leader", group: "System", key: "w" },
    ...{ roles: ["staff"], sharedOnly: true },
  },
  {
    ...{ path: "/tenants", title: "Tenants and keys", group: "System", key: "k" },
    roles: ["admin"],
  },
  { path: "/audit", title: "Audit", group: "System", key: "a", roles: ["manager"] },
  { path: "/health", title: "Health", group: "System", key: "h", roles: ["staff"] },
];

export const pagesFor = (session: Session): readonly PageEntry[] =>
  pages.filter(
    ({ roles, sharedOnly }) =>
      mayAct(session, ...roles) && (sharedOnly !== true || session.tenant === null),
  );
