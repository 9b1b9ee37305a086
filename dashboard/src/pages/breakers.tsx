import { useQuery } from "@tanstack/react-query";
import type { Breaker } from "../api/agreed.ts";
import * as queries from "../api/queries.ts";
import { send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Ago, Empty, StateMark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { duration, number, plural } from "../parts/words.ts";
import { useMay } from "../shell/session.ts";

const columns: readonly Column<Breaker>[] = [
  { id: "name", header: "Platform", cell: ({ name }) => name },
  {
    id: "state",
    header: "State",
    cell: ({ state, retry_after_ms }) => (
      <>
        <StateMark state={state} />
        {/^open$/i.test(state) ? (
          <span className="soft small clip">
            {retry_after_ms === null
              ? "until somebody closes it"
              : `probe in ${duration(retry_after_ms)}`}
          </span>
        ) : null}
      </>
    ),
  },
  {
    id: "failures",
    header: "Failures",
    align: "end",
    cell: ({ failures, failure_threshold }) => `${failures} / ${failure_threshold}`,
  },
  {
    id: "openings",
    header: "Opened",
    align: "end",
    wide: true,
    cell: ({ openings }) => `${number(openings)} ×`,
  },
  {
    id: "changed",
    header: "Changed",
    wide: true,
    cell: ({ changed_at, cause, reason }) => (
      <>
        <Ago at={changed_at} />
        <span className="soft small clip">{reason ?? cause}</span>
      </>
    ),
  },
  {
    id: "error",
    header: "Last error",
    wide: true,
    cell: ({ last_error, last_failure_at }) =>
      last_error === null ? (
        <span className="soft">none</span>
      ) : (
        <>
          <span className="clip" title={last_error}>
            {last_error}
          </span>
          <span className="soft small">
            <Ago at={last_failure_at} />
          </span>
        </>
      ),
  },
  { id: "actions", header: "", align: "end", cell: (breaker) => <Actions breaker={breaker} /> },
];

const verbs = {
  open: {
    title: "Open",
    text: "Every call to it is refused until somebody closes it. Its jobs wait and spend no attempts.",
  },
  close: { title: "Close", text: "Calls go through again; what waited comes back spread out." },
  reset: { title: "Reset", text: "It is closed, and forgets how often it opened and why." },
} as const;

function Actions({ breaker }: { breaker: Breaker }) {
  const { confirm, say, refresh } = useActions();
  const isManager = useMay("manager");
  if (!isManager) return null;
  const isClosed = /^closed$/i.test(breaker.state);
  const ask = (verb: keyof typeof verbs) =>
    confirm({
      title: `${verbs[verb].title} the breaker of ${breaker.name}?`,
      text: <p>{verbs[verb].text}</p>,
      ...{ action: verbs[verb].title, reason: "required", isDangerous: verb === "open" },
      run: async (reason) => {
        const path = `/api/breakers/${encodeURIComponent(breaker.name)}/${verb}`;
        const { state } = await send<Breaker>("POST", path, { reason });
        say(`The breaker of ${breaker.name} is ${state.toLowerCase().replace("_", " ")}.`);
        await refresh();
      },
    });
  return (
    <div className="row">
      <button type="button" onClick={() => ask(isClosed ? "open" : "close")}>
        {isClosed ? "Open…" : "Close…"}
      </button>
      <button type="button" className="quiet" onClick={() => ask("reset")}>
        Reset…
      </button>
    </div>
  );
}

export function BreakersPage() {
  const breakers = useQuery(queries.breakers());
  return (
    <Page
      title="Breakers"
      lead="One per outside platform, shared by all processes. While one is open, its jobs wait without spending attempts."
    >
      <Loaded query={breakers}>
        {({ breakers: rows }) => (
          <Panel title={plural(rows.length, "breaker")} padded={false}>
            <Table
              label="Breakers"
              columns={columns}
              rows={rows}
              keyOf={({ name }) => name}
              empty={
                <Empty title="No breakers yet" command={`defineJob({ platform: "stripe", … })`}>
                  <p>
                    Say which platform a job calls, and it has a breaker from its first call on:
                  </p>
                </Empty>
              }
            />
          </Panel>
        )}
      </Loaded>
    </Page>
  );
}
