import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Fragment, useMemo, useState } from "react";
import type { JobSummary } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { messageOf } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Ago, Empty, StateMark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { duration, plural } from "../parts/words.ts";
import { useMay } from "../shell/session.ts";
import { actionable, actOn, type BulkAction, collect, mostAtOnce } from "./bulk.ts";
import { JobFilter } from "./job-filter.tsx";
import { describe, findBy, type JobSearch, problemOf, toQuery } from "./job-search.ts";
import { SavedFilters } from "./saved-filters.tsx";

const route = getRouteApi("/jobs");

const columns: readonly Column<JobSummary>[] = [
  {
    id: "type",
    header: "Type",
    cell: ({ id, type }) => (
      <>
        <Link to="/jobs/$id" params={{ id }} data-row>
          {type}
        </Link>
        <span className="soft small mono clip">{id}</span>
      </>
    ),
  },
  { id: "state", header: "State", cell: ({ state }) => <StateMark state={state} /> },
  {
    id: "queue",
    header: "Queue",
    wide: true,
    cell: ({ queue, tenant_id }) => (
      <>
        {queue}
        <span className="soft small clip">{tenant_id}</span>
      </>
    ),
  },
  {
    id: "attempt",
    header: "Attempt",
    align: "end",
    wide: true,
    cell: ({ attempt, max_attempts }) => `${attempt} / ${max_attempts}`,
  },
  { id: "created", header: "Created", cell: ({ created_at }) => <Ago at={created_at} /> },
  {
    id: "took",
    header: "Ran",
    align: "end",
    wide: true,
    cell: ({ started_at, finished_at }) =>
      started_at !== null && finished_at !== null
        ? duration(Date.parse(finished_at) - Date.parse(started_at))
        : "–",
  },
  {
    id: "error",
    header: "Error or reference",
    wide: true,
    cell: ({ error_message, reference }) =>
      error_message === null ? (
        <span className="soft clip">{reference}</span>
      ) : (
        <span className="bad clip" title={error_message}>
          {error_message}
        </span>
      ),
  },
];

export function JobsPage() {
  const search = route.useSearch() as JobSearch;
  const navigate = route.useNavigate();
  const query = useMemo(() => toQuery(search, Date.now()), [search]);
  const problem = problemOf(search);
  const page = useQuery({ ...queries.jobs(query), enabled: problem === null });
  return (
    <Page title="Jobs" actions={<BulkButtons search={search} />}>
      <SavedFilters search={search} />
      <JobFilter
        search={search}
        shown={page.data?.jobs ?? []}
        onChange={(next) => void navigate({ search: next })}
      />
      {problem === null ? (
        <Loaded query={page}>
          {({ jobs, next_cursor }) => (
            <Panel title={describe(search)} padded={false}>
              <Table
                label="Jobs"
                columns={columns}
                rows={jobs}
                keyOf={({ id }) => id}
                empty={<NoJobs search={search} isMore={next_cursor !== null} />}
              />
              <Pager search={search} next={next_cursor} />
            </Panel>
          )}
        </Loaded>
      ) : (
        <NotSearched search={search} problem={problem} />
      )}
    </Page>
  );
}

/** What was typed may be something else: each of them is a click away. */
function NotSearched({ search, problem }: { search: JobSearch; problem: string }) {
  const { cursor: _, ...others } = search;
  return (
    <div className="note-box" data-tone="warn" role="alert">
      {problem} Find it as{" "}
      {(["reference", "idempotency_key", "correlation_id"] as const).map((by, i) => (
        <Fragment key={by}>
          {i === 0 ? "" : ", "}
          <Link to="/jobs" search={{ ...others, by }}>
            {findBy[by].toLowerCase()}
          </Link>
        </Fragment>
      ))}
      ?
    </div>
  );
}

function NoJobs({ search, isMore }: { search: JobSearch; isMore: boolean }) {
  if (isMore)
    return <p className="empty">Nothing among those looked at so far; older ones may match.</p>;
  if (Object.keys(search).length > 0)
    return (
      <Empty title="No job matches">
        <p>
          Types, tenants, references, keys and ids are found by their whole value: mail.send, not
          mail. <Link to="/jobs">All jobs</Link>
        </p>
      </Empty>
    );
  return (
    <Empty title="No jobs yet" command={`npx millrace enqueue echo '{"hello":"world"}'`}>
      <p>
        Jobs appear here the moment they are enqueued. Try one; it waits until a worker knows its
        type, as <code>npx millrace worker --demo</code> does:
      </p>
    </Empty>
  );
}

function Pager({ search, next }: { search: JobSearch; next: string | null }) {
  if (next === null && search.cursor === undefined) return null;
  const { cursor: _, ...first } = search;
  return (
    <nav className="row pager" aria-label="Pages of jobs">
      {search.cursor === undefined ? null : (
        <Link to="/jobs" search={first} className="button">
          Newest
        </Link>
      )}
      {next === null ? null : (
        <Link to="/jobs" search={{ ...search, cursor: next }} className="button">
          Older
        </Link>
      )}
    </nav>
  );
}

const words = {
  cancel: { verb: "Cancel", done: "cancelled or asked to stop", reason: "optional" },
  reprocess: { verb: "Reprocess", done: "enqueued again", reason: "required" },
} as const;

/** Only where a filter says which jobs: nobody means all of them. */
function BulkButtons({ search }: { search: JobSearch }) {
  const isManager = useMay("manager");
  const { confirm, say, refresh } = useActions();
  const [isCounting, setCounting] = useState(false);
  const states = search.state?.split(",") ?? [];
  const { cursor: _, ...filter } = search;
  if (!isManager || states.length === 0) return null;
  const offered = (Object.keys(words) as BulkAction[]).filter((action) =>
    states.every((state) => actionable[action].has(state)),
  );
  const ask = async (action: BulkAction) => {
    setCounting(true);
    try {
      const { jobs, isMore } = await collect(toQuery(filter, Date.now()));
      const { verb, done, reason } = words[action];
      if (jobs.length === 0) return say("No job matches any more.");
      confirm({
        title: `${verb} ${plural(jobs.length, "job")}?`,
        text: (
          <>
            <p>All that match: {describe(filter)}.</p>
            {isMore ? <p>There are more; the newest {mostAtOnce} are taken now.</p> : null}
          </>
        ),
        action: `${verb} ${plural(jobs.length, "job")}`,
        isDangerous: action === "cancel",
        ...{ reason, typed: String(jobs.length) },
        run: async (why) => {
          const count = await actOn(action, jobs, why);
          say(`${plural(count, "job")} of ${jobs.length} ${done}.`);
          await refresh();
        },
      });
    } catch (error) {
      say(messageOf(error));
    } finally {
      setCounting(false);
    }
  };
  return offered.map((action) => (
    <button key={action} type="button" disabled={isCounting} onClick={() => void ask(action)}>
      {words[action].verb} all that match…
    </button>
  ));
}
