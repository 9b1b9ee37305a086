import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Worker } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Ago, Empty, StateMark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { number, plural } from "../parts/words.ts";
import { ClusterPanel } from "./cluster-panel.tsx";

const route = getRouteApi("/workers");

const busy = ({ running }: Worker): number => Object.values(running).reduce((a, b) => a + b, 0);

/** What a worker says of itself; nobody promises its shape. */
function infoOf({ info }: Worker): string {
  if (typeof info !== "object" || info === null) return "";
  return Object.entries(info)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [name, wordsOf(value)] as const)
    .filter(([, words]) => words !== "")
    .map(([name, words]) => `${name} ${words}`)
    .join(" · ");
}

function wordsOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, inner]) => `${name}: ${String(inner)}`)
    .join(", ");
}

const columns: readonly Column<Worker>[] = [
  {
    id: "name",
    header: "Worker",
    sort: ({ name }) => name,
    cell: (worker) => (
      <>
        {worker.name}
        <span className="soft small lines">{infoOf(worker)}</span>
      </>
    ),
  },
  {
    id: "state",
    header: "State",
    sort: ({ state }) => state,
    cell: ({ state }) => <StateMark state={state} />,
  },
  {
    id: "running",
    header: "Running",
    align: "end",
    sort: busy,
    cell: (worker) => number(busy(worker)),
  },
  {
    id: "what",
    header: "Of which types",
    wide: true,
    cell: ({ running }) =>
      Object.entries(running)
        .map(([type, count]) => `${type} ${count}`)
        .join(", ") || <span className="soft">idle</span>,
  },
  {
    id: "started",
    header: "Started",
    wide: true,
    sort: ({ started_at }) => started_at,
    cell: ({ started_at }) => <Ago at={started_at} />,
  },
  {
    id: "renewed",
    header: "Last seen",
    sort: ({ renewed_at }) => renewed_at,
    cell: ({ renewed_at }) => <Ago at={renewed_at} />,
  },
];

export function WorkersPage() {
  const { sort = "-renewed" } = route.useSearch();
  const navigate = route.useNavigate();
  const workers = useQuery(queries.workers());
  return (
    <Page title="Workers and leader">
      <ClusterPanel />
      <Loaded query={workers}>
        {({ workers: rows }) => (
          <Panel
            title={plural(rows.filter(({ state }) => state === "live").length, "live worker")}
            padded={false}
          >
            <Table
              label="Workers"
              columns={columns}
              rows={rows}
              keyOf={({ lease_id }) => lease_id}
              sort={sort}
              onSort={(next) => void navigate({ search: { sort: next }, replace: true })}
              empty={
                <Empty title="No worker has been seen" command="npx millrace worker ./jobs.ts">
                  <p>Jobs wait until a process that knows their type runs them:</p>
                </Empty>
              }
            />
          </Panel>
        )}
      </Loaded>
    </Page>
  );
}
