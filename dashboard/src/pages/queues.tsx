import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Queue, Statistics } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Empty, Mark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { failuresOf, perMinute, rateMinutes, spanWords } from "../parts/rates.ts";
import { type Column, Table } from "../parts/table.tsx";
import { Text } from "../parts/text-field.tsx";
import { plural, rate, short } from "../parts/words.ts";
import { useMay } from "../shell/session.ts";
import { PauseButton } from "./queue-actions.tsx";
import { NewQueueDialog } from "./queue-settings.tsx";

const route = getRouteApi("/queues");

type Row = Queue & {
  readonly counts: Statistics["queues"][number] | undefined;
  /** Per minute. */
  readonly done: number;
  readonly failed: number;
};

export function QueueMark({ queue }: { queue: Queue }) {
  if (!queue.is_active) return <Mark tone="bad">inactive</Mark>;
  return queue.paused ? <Mark tone="warn">paused</Mark> : <Mark tone="good">active</Mark>;
}

const columns: readonly Column<Row>[] = [
  {
    id: "name",
    header: "Queue",
    sort: ({ name }) => name,
    cell: ({ id, name, description }) => (
      <>
        <Link to="/queues/$id" params={{ id: String(id) }} data-row>
          {name}
        </Link>
        <span className="soft small clip">{description}</span>
      </>
    ),
  },
  {
    id: "tenant",
    header: "Tenant",
    wide: true,
    sort: ({ tenant_id }) => tenant_id ?? "",
    cell: ({ tenant_id }) => tenant_id ?? <span className="soft">shared</span>,
  },
  { id: "state", header: "State", cell: (queue) => <QueueMark queue={queue} /> },
  {
    id: "depth",
    header: "Not ended",
    align: "end",
    sort: ({ counts }) => counts?.depth ?? 0,
    cell: ({ counts }) => (counts === undefined ? "–" : short(counts.depth)),
  },
  {
    id: "rate",
    header: "Done /min",
    align: "end",
    sort: ({ done }) => done,
    cell: ({ counts, done }) => (counts === undefined ? "–" : rate(done)),
  },
  {
    id: "failed",
    header: "Failed /min",
    align: "end",
    wide: true,
    sort: ({ failed }) => failed,
    cell: ({ counts, failed }) => (counts === undefined ? "–" : rate(failed)),
  },
  {
    id: "dead",
    header: "Died in all",
    align: "end",
    wide: true,
    sort: ({ counts }) => counts?.dead ?? 0,
    cell: ({ counts }) => (counts === undefined ? "–" : short(counts.dead)),
  },
  { id: "control", header: "", align: "end", cell: (queue) => <PauseButton queue={queue} /> },
];

export function QueuesPage() {
  const { find = "", sort = "-depth" } = route.useSearch();
  const navigate = route.useNavigate();
  const isManager = useMay("manager");
  const [isMaking, setMaking] = useState(false);
  const queues = useQuery(queries.queues());
  const { data: statistics } = useQuery({
    ...queries.statistics(rateMinutes),
    enabled: isManager,
  });
  const set = (change: { find?: string; sort?: string }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <Page
      title="Queues"
      actions={
        isManager ? (
          <button type="button" className="primary" onClick={() => setMaking(true)}>
            New queue…
          </button>
        ) : null
      }
    >
      <div className="fields">
        <Text label="Name contains" value={find} isSearch onSet={(value) => set({ find: value })} />
      </div>
      <Loaded query={queues}>
        {(all) => (
          <Panel
            title={plural(all.length, "queue")}
            padded={false}
            actions={isManager ? <span className="soft">/min: {spanWords(statistics)}</span> : null}
          >
            <Table
              label="Queues"
              columns={columns}
              rows={rowsOf(all, statistics).filter(({ name }) =>
                name.toLowerCase().includes(find.toLowerCase()),
              )}
              keyOf={({ id }) => String(id)}
              empty={<NoQueues isFiltered={find !== ""} />}
              sort={sort}
              onSort={(next) => set({ sort: next })}
            />
          </Panel>
        )}
      </Loaded>
      {isMaking ? <NewQueueDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

function rowsOf(queues: readonly Queue[], statistics: Statistics | undefined): Row[] {
  const byId = new Map(statistics?.queues.map((one) => [one.queue_id, one]));
  return queues.map((queue) => {
    const counts = byId.get(queue.id);
    const rateOf = (count: number) => (statistics ? perMinute(count, statistics) : 0);
    return {
      ...{ ...queue, counts, done: rateOf(counts?.recent.completed ?? 0) },
      failed: counts === undefined ? 0 : rateOf(failuresOf(counts.recent)),
    };
  });
}

const NoQueues = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No queue of that name" />
  ) : (
    <Empty title="No queues yet" command="npx millrace enqueue echo --queue mail">
      <p>A queue is made by the first job that names it, or here:</p>
    </Empty>
  );
