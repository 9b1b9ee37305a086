import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { Tenant } from "../api/agreed.ts";
import * as queries from "../api/queries.ts";
import { messageOf, send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Empty, Mark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { duration, number, plural } from "../parts/words.ts";
import { useSession } from "../shell/session.ts";
import { KeysPanel } from "./keys.tsx";
import { EraseButton, TenantDialog } from "./tenant-settings.tsx";

const route = getRouteApi("/tenants");

const columns: readonly Column<Tenant>[] = [
  { id: "name", header: "Tenant", cell: ({ tenant_id }) => tenant_id },
  {
    id: "state",
    header: "State",
    cell: ({ paused }) =>
      paused ? <Mark tone="warn">paused</Mark> : <Mark tone="good">active</Mark>,
  },
  { id: "weight", header: "Share", align: "end", cell: ({ weight }) => number(weight) },
  {
    id: "rate",
    header: "May enqueue",
    wide: true,
    cell: ({ rate_limit }) =>
      rate_limit === null
        ? "without limit"
        : `${number(rate_limit.limit)} in ${duration(rate_limit.window_ms)}`,
  },
  { id: "actions", header: "", align: "end", cell: (tenant) => <Actions tenant={tenant} /> },
];

function Actions({ tenant }: { tenant: Tenant }) {
  const { say, refresh } = useActions();
  const { tenant: own } = useSession();
  const [isEditing, setEditing] = useState(false);
  if (own !== null) return null;
  const { tenant_id, paused } = tenant;
  const flip = async () => {
    try {
      const verb = paused ? "resume" : "pause";
      await send("POST", `/api/tenants/${encodeURIComponent(tenant_id)}/${verb}`);
      say(`${tenant_id} is ${paused ? "served again" : "paused; its jobs are kept"}.`);
    } catch (error) {
      say(messageOf(error));
    }
    await refresh();
  };
  return (
    <div className="row">
      <button
        type="button"
        aria-label={`${paused ? "Resume" : "Pause"} ${tenant_id}`}
        onClick={() => void flip()}
      >
        {paused ? "Resume" : "Pause"}
      </button>
      <button type="button" className="quiet" onClick={() => setEditing(true)}>
        Limits…
      </button>
      <EraseButton tenant={tenant} />
      {isEditing ? <TenantDialog tenant={tenant} onClose={() => setEditing(false)} /> : null}
    </div>
  );
}

export function TenantsPage() {
  const { cursor } = route.useSearch();
  const tenants = useQuery(queries.tenants(cursor));
  return (
    <Page title="Tenants and keys">
      <Panel title="Tenants" padded={false}>
        <Loaded query={tenants}>
          {({ tenants: rows }) => (
            <Table
              label="Tenants"
              columns={columns}
              rows={rows}
              keyOf={({ tenant_id }) => tenant_id}
              empty={
                <Empty title="No tenants yet">
                  <p>
                    A tenant appears with its first job, key or queue:{" "}
                    <code>enqueue(job, payload, {'{ tenant: "acme" }'})</code>
                  </p>
                </Empty>
              }
            />
          )}
        </Loaded>
        <span className="sr-only">{plural(tenants.data?.tenants.length ?? 0, "tenant")}</span>
      </Panel>
      <KeysPanel />
    </Page>
  );
}
