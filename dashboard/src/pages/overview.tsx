// The page for 3 a.m.: is it moving, how far behind is it, and where does it hurt?

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { QueueStats, Statistics } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Chart, type Line } from "../parts/chart.tsx";
import { Empty } from "../parts/marks.tsx";
import { type Figure, Figures, Loaded, Page, Panel } from "../parts/page.tsx";
import { brief, plural, rate, short } from "../parts/words.ts";
import { useMay, useSession } from "../shell/session.ts";
import { BusyQueues } from "./busy-queues.tsx";
import { ClusterPanel } from "./cluster-panel.tsx";
import { ProblemList } from "./problems.tsx";

/** Of so many queues the figures are read that cost a question each. */
const mostRead = 6;
const minutes = 60;

export function OverviewPage() {
  const isManager = useMay("manager");
  return (
    <Page title="Overview">
      {isManager ? <Numbers /> : <StaffNote />}
      {isManager ? null : <ClusterPanel />}
    </Page>
  );
}

const StaffNote = () => (
  <div className="note-box">
    Rates and counts are for managers. <Link to="/queues">Queues</Link> and{" "}
    <Link to="/jobs">jobs</Link> are open to you.
  </div>
);

function Numbers() {
  const statistics = useQuery(queries.statistics(minutes));
  return (
    <Loaded query={statistics}>
      {(data) => (data.totals.enqueued === 0 ? <FirstSteps /> : <Moving statistics={data} />)}
    </Loaded>
  );
}

const FirstSteps = () => (
  <>
    <Panel title="Nothing has been enqueued yet" padded={false}>
      <Empty title="Send the first job" command={`millrace enqueue echo '{"hello":"world"}'`}>
        <p>
          From TypeScript it is one line, in your own transaction if you like:{" "}
          <code>await millrace.enqueue(job, payload)</code>. From a shell:
        </p>
      </Empty>
    </Panel>
    <ClusterPanel />
  </>
);

function Moving({ statistics }: { statistics: Statistics }) {
  const read = useMemo(() => toRead(statistics), [statistics]);
  // A minute that is not over would look like a fall.
  const over = useMemo(() => statistics.series.slice(0, -1), [statistics]);
  const stats = useQueries({
    queries: read.map(({ queue_id }) => queries.queueStats(queue_id)),
    combine: (results) => new Map(results.map(({ data }, i) => [read[i]?.queue_id ?? 0, data])),
  });
  return (
    <>
      <Head statistics={statistics} stats={stats} />
      <div className="split">
        <Throughput series={over} />
        <Failures series={over} />
      </div>
      <div className="split">
        <BusyQueues queues={read} stats={stats} all={statistics.queues.length} />
        <div className="stack">
          <ProblemList statistics={statistics} stats={stats} />
          <ClusterPanel />
        </div>
      </div>
    </>
  );
}

/** The deepest and the busiest. */
function toRead({ queues }: Statistics): Statistics["queues"] {
  const weight = (queue: Statistics["queues"][number]) =>
    queue.depth * 2 + queue.recent.completed + queue.recent.dead * 10 + queue.recent.retried * 5;
  return [...queues]
    .filter((queue) => weight(queue) > 0)
    .sort((a, b) => weight(b) - weight(a) || a.queue_id - b.queue_id)
    .slice(0, mostRead);
}

interface HeadProps {
  readonly statistics: Statistics;
  readonly stats: ReadonlyMap<number, QueueStats | undefined>;
}

function Head({ statistics, stats }: HeadProps) {
  const { tenant } = useSession();
  const { data: letters } = useQuery(queries.deadLetterStatistics());
  const { data: workers } = useQuery({ ...queries.workers(), enabled: tenant === null });
  const figures = figuresOf(statistics, [...stats.values()]);
  const dead = letters?.by_status.pending_review ?? 0;
  figures.push({
    label: "Dead letters",
    value: short(dead),
    note: letters ? `${short(letters.last_day)} in the last day` : "",
    ...(dead > 0 ? { tone: "bad" as const } : {}),
  });
  if (workers !== undefined) {
    const live = workers.workers.filter(({ state }) => state === "live");
    const running = live.flatMap((worker) => Object.values(worker.running));
    figures.push({
      label: "Workers",
      value: live.length,
      note: `${plural(
        running.reduce((a, b) => a + b, 0),
        "job",
      )} running`,
      ...(live.length === 0 ? { tone: "warn" as const } : {}),
    });
  }
  return <Figures figures={figures} />;
}

/** Rates are of the last five minutes that are over. */
function figuresOf(
  { totals, series }: Statistics,
  stats: readonly (QueueStats | undefined)[],
): Figure[] {
  const last = series.slice(-6, -1);
  const perMinute = (pick: (minute: Statistics["series"][number]) => number) =>
    last.length === 0 ? 0 : last.reduce((sum, minute) => sum + pick(minute), 0) / last.length;
  const failing = perMinute(({ retried, dead }) => retried + dead);
  const oldest = Math.max(0, ...stats.map((one) => one?.oldest_new_seconds ?? 0));
  const slowest = Math.max(0, ...stats.map((one) => one?.processing_ms?.p95 ?? 0));
  return [
    {
      label: "Completed",
      value: rate(perMinute(({ completed }) => completed)),
      unit: "/min",
      note: `${short(totals.completed)} in all`,
    },
    {
      label: "Enqueued",
      value: rate(perMinute(({ enqueued }) => enqueued)),
      unit: "/min",
      note: `${short(totals.enqueued)} in all`,
    },
    {
      label: "Failing",
      value: rate(failing),
      unit: "/min",
      note: "runs that failed",
      ...(failing > 0 ? { tone: "warn" as const } : {}),
    },
    { label: "Not ended", value: short(totals.depth), note: "waiting, delayed or running" },
    {
      label: "Oldest ready",
      value: oldest === 0 ? "–" : brief(oldest * 1_000),
      note: "waiting for a worker",
      ...(oldest > 60 ? { tone: "warn" as const } : {}),
    },
    {
      label: "Run time, p95",
      value: slowest === 0 ? "–" : brief(slowest),
      note: "slowest queue",
    },
  ];
}

type Series = Statistics["series"];

function Throughput({ series }: { series: Series }) {
  const lines: Line[] = useMemo(
    () => [
      {
        ...{ label: "Completed", colour: "--accent", isFilled: true },
        values: series.map(({ completed }) => completed),
      },
      {
        ...{ label: "Enqueued", colour: "--chart-2" },
        values: series.map(({ enqueued }) => enqueued),
      },
    ],
    [series],
  );
  const times = useMemo(() => series.map(({ at }) => at), [series]);
  return (
    <Panel title="Throughput per minute">
      <Chart label="Jobs completed and enqueued per minute, the last hour" {...{ times, lines }} />
    </Panel>
  );
}

function Failures({ series }: { series: Series }) {
  const lines: Line[] = useMemo(
    () => [
      {
        ...{ label: "Tried again", colour: "--warn", isFilled: true },
        values: series.map(({ retried }) => retried),
      },
      { ...{ label: "Dead", colour: "--bad" }, values: series.map(({ dead }) => dead) },
    ],
    [series],
  );
  const times = useMemo(() => series.map(({ at }) => at), [series]);
  return (
    <Panel title="Failures per minute">
      <Chart label="Runs that failed per minute, the last hour" {...{ times, lines }} />
    </Panel>
  );
}
