import { Link } from "@tanstack/react-router";
import type { QueueStats, Statistics } from "../api/answers.ts";
import { Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { duration, rate, short } from "../parts/words.ts";

type Row = Statistics["queues"][number] & { readonly stats: QueueStats | undefined };

const minutes = 60;

const columns: readonly Column<Row>[] = [
  {
    id: "name",
    header: "Queue",
    cell: ({ queue_id, name, tenant_id }) => (
      <>
        <Link to="/queues/$id" params={{ id: String(queue_id) }} data-row>
          {name}
        </Link>
        {tenant_id === null ? null : <span className="soft"> {tenant_id}</span>}
      </>
    ),
  },
  { id: "depth", header: "Not ended", align: "end", cell: ({ depth }) => short(depth) },
  {
    id: "rate",
    header: "Done /min",
    align: "end",
    cell: ({ recent }) => rate(recent.completed / minutes),
  },
  {
    id: "failed",
    header: "Failed /min",
    align: "end",
    wide: true,
    cell: ({ recent }) => rate((recent.retried + recent.dead) / minutes),
  },
  {
    id: "oldest",
    header: "Oldest ready",
    align: "end",
    cell: ({ stats }) =>
      stats?.oldest_new_seconds ? duration(stats.oldest_new_seconds * 1_000) : "–",
  },
  {
    id: "p95",
    header: "Run p50 / p95",
    align: "end",
    wide: true,
    cell: ({ stats }) =>
      stats?.processing_ms
        ? `${duration(stats.processing_ms.p50)} / ${duration(stats.processing_ms.p95)}`
        : "–",
  },
];

export function BusyQueues(props: {
  readonly queues: Statistics["queues"];
  readonly stats: ReadonlyMap<number, QueueStats | undefined>;
  readonly all: number;
}) {
  const rows = props.queues.map((queue) => ({ ...queue, stats: props.stats.get(queue.queue_id) }));
  return (
    <Panel
      title="Busiest queues"
      padded={false}
      actions={<Link to="/queues">All {props.all} queues</Link>}
    >
      <Table
        label="Busiest queues"
        columns={columns}
        rows={rows}
        keyOf={({ queue_id }) => String(queue_id)}
        empty={<p className="empty">Nothing has moved in the last hour.</p>}
      />
    </Panel>
  );
}
