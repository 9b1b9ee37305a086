import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { DeadLetter, DeadLetterStatistics } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Ago, Empty, Mark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { duration, number, plural } from "../parts/words.ts";
import { DeadLetterFilter } from "./dead-letter-filter.tsx";
import { LetterActions, RepairButtons } from "./dead-letter-repair.tsx";
import { filterOf, type LetterSearch } from "./letter-search.ts";

const route = getRouteApi("/dead-letters");

const columns: readonly Column<DeadLetter>[] = [
  {
    id: "type",
    header: "Job",
    cell: ({ dlq_id, job_type, queue }) => (
      <>
        <Link to="/jobs/$id" params={{ id: dlq_id }} data-row>
          {job_type}
        </Link>
        <span className="soft small clip">{queue}</span>
      </>
    ),
  },
  {
    id: "error",
    header: "Error",
    cell: ({ error_message, error_class }) => (
      <>
        <span className="clip" title={error_message}>
          {error_message}
        </span>
        <span className="soft small">{error_class}</span>
      </>
    ),
  },
  { id: "tenant", header: "Tenant", wide: true, cell: ({ tenant_id }) => tenant_id },
  {
    id: "attempts",
    header: "Attempts",
    align: "end",
    wide: true,
    cell: ({ attempt_count }) => attempt_count,
  },
  { id: "died", header: "Died", cell: ({ created_at }) => <Ago at={created_at} /> },
  { id: "status", header: "", align: "end", cell: (letter) => <Status letter={letter} /> },
];

function Status({ letter }: { letter: DeadLetter }) {
  if (letter.status === "pending_review") return <LetterActions letter={letter} />;
  return (
    <>
      <Mark>{letter.status.replaceAll("_", " ")}</Mark>
      <span className="soft small clip">{letter.notes}</span>
    </>
  );
}

export function DeadLettersPage() {
  const search = route.useSearch() as LetterSearch;
  const navigate = route.useNavigate();
  const { tenant, status = "pending_review", cursor } = search;
  const filter = filterOf(search);
  const statistics = useQuery(queries.deadLetterStatistics(tenant ? { tenant_id: tenant } : {}));
  const page = useQuery(queries.deadLetters({ ...filter, status, cursor, limit: 50 }));
  return (
    <Page
      title="Dead letters"
      lead="Jobs that will not be tried again by themselves. Each waits for a person: run it again, or close it, and say why."
    >
      <Loaded query={statistics}>{(data) => <Groups statistics={data} search={search} />}</Loaded>
      <DeadLetterFilter search={search} onChange={(next) => void navigate({ search: next })} />
      <Loaded query={page}>
        {({ dlq_items, total_count, next_cursor }) => (
          <Panel
            title={`${plural(total_count, "dead letter")}, ${status.replaceAll("_", " ")}`}
            padded={false}
            actions={
              status === "pending_review" && total_count > 0 ? (
                <RepairButtons filter={filter} count={total_count} />
              ) : null
            }
          >
            <Table
              label="Dead letters"
              columns={columns}
              rows={dlq_items}
              keyOf={({ dlq_id }) => dlq_id}
              empty={<NoLetters isFiltered={Object.keys(search).length > 0} />}
            />
            {next_cursor === null ? null : (
              <nav className="row pager" aria-label="Pages of dead letters">
                <Link
                  to="/dead-letters"
                  search={{ ...search, cursor: next_cursor }}
                  className="button"
                >
                  Older
                </Link>
              </nav>
            )}
          </Panel>
        )}
      </Loaded>
    </Page>
  );
}

const NoLetters = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No dead letter matches">
      <p>
        <Link to="/dead-letters">All that wait for review</Link>
      </p>
    </Empty>
  ) : (
    <Empty title="Nothing waits for review">
      <p>
        A job comes here when it has failed as often as it may, when its error says that trying
        again is no use, or when it has taken three workers down with it.
      </p>
    </Empty>
  );

function Groups(props: {
  readonly statistics: DeadLetterStatistics;
  readonly search: LetterSearch;
}) {
  const { top_fingerprints, oldest_pending_seconds } = props.statistics;
  const { cursor: _, fingerprint: chosen, ...others } = props.search;
  if (top_fingerprints.length === 0) return null;
  const oldest =
    oldest_pending_seconds === null
      ? ""
      : `the oldest has waited ${duration(oldest_pending_seconds * 1_000)}`;
  return (
    <Panel title="By error" padded={false} actions={<span className="soft">{oldest}</span>}>
      <ul className="list">
        {top_fingerprints.map(({ error_fingerprint, error_message, count, last_at }) => (
          <li key={error_fingerprint} data-chosen={chosen === error_fingerprint}>
            <Link
              to="/dead-letters"
              search={
                chosen === error_fingerprint
                  ? others
                  : { ...others, fingerprint: error_fingerprint }
              }
              aria-current={chosen === error_fingerprint ? "true" : undefined}
            >
              {error_message === "" ? "(no message)" : error_message}
            </Link>
            <span className="soft">
              <b className="bad">{number(count)}</b>, last <Ago at={last_at} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
