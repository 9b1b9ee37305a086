import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { AuditEntry, AuditVerification } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { get, messageOf } from "../api/service.ts";
import { Ago, Empty } from "../parts/marks.tsx";
import { Failure, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Text } from "../parts/text-field.tsx";
import { plural } from "../parts/words.ts";
import { useMay, useSession } from "../shell/session.ts";
import { AuditActor, AuditTarget } from "./audit-names.tsx";

const route = getRouteApi("/audit");

const columns: readonly Column<AuditEntry>[] = [
  { id: "at", header: "When", cell: ({ at }) => <Ago at={at} /> },
  {
    id: "action",
    header: "What",
    cell: ({ action, details }) => (
      <>
        {action.replaceAll("_", " ")}
        {details === null ? null : (
          <span className="soft small mono clip" title={JSON.stringify(details)}>
            {JSON.stringify(details)}
          </span>
        )}
      </>
    ),
  },
  { id: "target", header: "On", wide: true, cell: (entry) => <AuditTarget entry={entry} /> },
  { id: "reason", header: "Why", cell: ({ reason }) => reason ?? <span className="soft">–</span> },
  {
    id: "actor",
    header: "Who",
    wide: true,
    cell: ({ actor, tenant_id }) => (
      <>
        <AuditActor actor={actor} />
        <span className="soft small clip">{tenant_id}</span>
      </>
    ),
  },
  { id: "no", header: "No.", align: "end", wide: true, cell: ({ no }) => no },
];

export function AuditPage() {
  const { action, target, tenant } = route.useSearch();
  const session = useSession();
  const navigate = route.useNavigate();
  const audit = useInfiniteQuery(queries.audit({ action, target, tenant_id: tenant }));
  const entries = audit.data?.pages.flatMap((page) => page.entries) ?? [];
  const set = (change: { action?: string; target?: string; tenant?: string }) =>
    void navigate({ search: (before) => ({ ...before, ...change }) });
  return (
    <Page
      title="Audit"
      lead="What people did, and why. Entries are only ever added, and each carries the hash of the one before."
      actions={<Verify />}
    >
      <div className="fields">
        <Text label="Action" value={action} onSet={(value) => set({ action: value })} />
        <Text label="Target" value={target} isSearch onSet={(value) => set({ target: value })} />
        {session.tenant === null ? (
          <Text label="Tenant" value={tenant} onSet={(value) => set({ tenant: value })} />
        ) : null}
      </div>
      {audit.error === null ? null : <Failure error={audit.error} />}
      <Panel title="Entries, the newest first" padded={false}>
        <Table
          label="Audit entries"
          columns={columns}
          rows={entries}
          keyOf={({ no }) => String(no)}
          empty={
            audit.isPending ? (
              <p className="empty" role="status">
                Loading…
              </p>
            ) : (
              <Empty title="No entry" command="npx millrace audit verify">
                <p>What operators change is written here. The chain can be checked at any time:</p>
              </Empty>
            )
          }
        />
        {audit.hasNextPage ? (
          <div className="row pager">
            <button type="button" onClick={() => void audit.fetchNextPage()}>
              Older
            </button>
          </div>
        ) : null}
      </Panel>
    </Page>
  );
}

function Verify() {
  const { tenant } = useSession();
  const isAdmin = useMay("admin");
  const [result, setResult] = useState<AuditVerification | string | null>(null);
  const [isBusy, setBusy] = useState(false);
  if (!isAdmin || tenant !== null) return null;
  const verify = async () => {
    setBusy(true);
    try {
      setResult(await get<AuditVerification>("/api/audit/verify"));
    } catch (error) {
      setResult(messageOf(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => void verify()}>
        {isBusy ? "Verifying…" : "Verify the chain"}
      </button>
      <span role="status" className={toneOf(result)}>
        {sentenceOf(result)}
      </span>
    </>
  );
}

const toneOf = (result: AuditVerification | string | null): string =>
  result !== null && typeof result === "object" && result.ok ? "good" : "bad";

function sentenceOf(result: AuditVerification | string | null): string {
  if (result === null || typeof result === "string") return result ?? "";
  if (result.ok) return `Whole: ${plural(result.entries, "entry", "entries")}.`;
  return `Broken at ${result.broken_at}: ${result.problem}`;
}
