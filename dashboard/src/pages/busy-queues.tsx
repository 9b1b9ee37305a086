import { Link } from "@tanstack/react-router";
import type { QueueStats, Statistics } from "../api/answers.ts";
import { Panel } from "../parts/page.tsx";
import { failuresOf, perMinute, spanWords } from "../parts/rates.ts";
import { type Column, Table } from "../parts/table.tsx";
import { duration, plural, rate, short } from "../parts/words.ts";

type Row = Statistics["queues"][number] & {
  readonly stats: QueueStats | undefined;
  /** Per minute; undefined: not known yet. */
  readonly done: number | undefined;
  readonly failed: number | undefined;
};

const rateOrNone = (value: number | undefined) => (value === undefined ? "–" : rate(value));

const columns: readonly Column<Row>[] = [
  {
    id: "name",
    header: "Queue",
    cell: ({ queue_id, name, tenant_id }) => (
      <>
        <Link
          to="/queues/$id"
          params={{ id: String(queue_id) }}
          className="name"
          title={name}
          data-row
        >
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
    cell: ({ done }) => rateOrNone(done),
  },
  {
    id: "failed",
    header: "Failed /min",
    align: "end",
    wide: true,
    cell: ({ failed }) => rateOrNone(failed),
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
  readonly lately: Statistics | undefined;
  readonly stats: ReadonlyMap<number, QueueStats | undefined>;
  readonly all: number;
}) {
  const { lately } = props;
  const recent = new Map(lately?.queues.map((queue) => [queue.queue_id, queue.recent]));
  const rows = props.queues.map((queue): Row => {
    const counts = recent.get(queue.queue_id);
    const known = lately !== undefined && counts !== undefined;
    return {
      ...{ ...queue, stats: props.stats.get(queue.queue_id) },
      done: known ? perMinute(counts.completed, lately) : undefined,
      failed: known ? perMinute(failuresOf(counts), lately) : undefined,
    };
  });
  return (
    <Panel
      title={
        <>
          Busiest queues <small className="soft">/min: {spanWords(lately)}</small>
        </>
      }
      padded={false}
      actions={<Link to="/queues">{plural(props.all, "queue")} in all</Link>}
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
