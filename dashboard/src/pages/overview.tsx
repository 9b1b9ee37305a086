// The page for 3 a.m.: is it moving, how far behind is it, and where does it hurt?

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { QueueStats, Statistics } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Command, Empty } from "../parts/marks.tsx";
import { type Figure, Figures, Loaded, Page, Panel } from "../parts/page.tsx";
import { failuresOf, perMinute, rateMinutes, spanWords } from "../parts/rates.ts";
import { brief, plural, rate, short } from "../parts/words.ts";
import { useMay, useSession } from "../shell/session.ts";
import { BusyQueues } from "./busy-queues.tsx";
import { ClusterPanel } from "./cluster-panel.tsx";
import { MinuteCharts } from "./minute-charts.tsx";
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
      <Empty title="Send the first job" command={`npx millrace enqueue echo '{"hello":"world"}'`}>
        <p>
          From TypeScript it is one line, in your own transaction if you like:{" "}
          <code>await millrace.enqueue(job, payload)</code>.
        </p>
        <p>To see one run without writing code, start a worker that knows the job echo:</p>
        <Command text="npx millrace worker --demo" />
        <p>and send it one, from another terminal in the same folder:</p>
      </Empty>
    </Panel>
    <ClusterPanel />
  </>
);

function Moving({ statistics }: { statistics: Statistics }) {
  const read = useMemo(() => toRead(statistics), [statistics]);
  const { data: lately } = useQuery(queries.statistics(rateMinutes));
  const stats = useQueries({
    queries: read.map(({ queue_id }) => queries.queueStats(queue_id)),
    combine: (results) => new Map(results.map(({ data }, i) => [read[i]?.queue_id ?? 0, data])),
  });
  return (
    <>
      <Head statistics={statistics} lately={lately} stats={stats} />
      <MinuteCharts statistics={statistics} />
      <div className="split">
        <BusyQueues queues={read} lately={lately} stats={stats} all={statistics.queues.length} />
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
  readonly lately: Statistics | undefined;
  readonly stats: ReadonlyMap<number, QueueStats | undefined>;
}

function Head({ statistics, lately, stats }: HeadProps) {
  const { tenant } = useSession();
  const { data: letters } = useQuery(queries.deadLetterStatistics());
  const { data: workers } = useQuery({ ...queries.workers(), enabled: tenant === null });
  const figures = figuresOf(statistics, lately, [...stats.values()]);
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

type Minute = Statistics["series"][number];

function figuresOf(
  { totals }: Statistics,
  lately: Statistics | undefined,
  stats: readonly (QueueStats | undefined)[],
): Figure[] {
  const rateOf = (pick: (minute: Minute) => number): number | null =>
    lately === undefined
      ? null
      : perMinute(
          lately.series.reduce((sum, minute) => sum + pick(minute), 0),
          lately,
        );
  const words = (value: number | null) => (value === null ? "–" : rate(value));
  const over = spanWords(lately);
  const failing = rateOf(failuresOf);
  const oldest = Math.max(0, ...stats.map((one) => one?.oldest_new_seconds ?? 0));
  const slowest = Math.max(0, ...stats.map((one) => one?.processing_ms?.p95 ?? 0));
  return [
    {
      label: `Completed, ${over}`,
      value: words(rateOf(({ completed }) => completed)),
      unit: "/min",
      note: `${short(totals.completed)} in all`,
    },
    {
      label: `Enqueued, ${over}`,
      value: words(rateOf(({ enqueued }) => enqueued)),
      unit: "/min",
      note: `${short(totals.enqueued)} in all`,
    },
    {
      label: `Failing, ${over}`,
      value: words(failing),
      unit: "/min",
      note: "runs that failed",
      ...((failing ?? 0) > 0 ? { tone: "warn" as const } : {}),
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
