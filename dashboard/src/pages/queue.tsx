import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { Queue, QueueStats } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Failure, Figures, Loaded, Page, Panel } from "../parts/page.tsx";
import { brief, duration, plural, short } from "../parts/words.ts";
import { useSession } from "../shell/session.ts";
import { MinuteCharts } from "./minute-charts.tsx";
import { DeleteButton, PauseButton, PurgeButton, useMayChange } from "./queue-actions.tsx";
import { QueueSettings } from "./queue-settings.tsx";
import { QueueMark } from "./queues.tsx";

const route = getRouteApi("/queues/$id");

export function QueuePage() {
  const { id } = route.useParams();
  const queue = useQuery(queries.queue(id));
  return <Loaded query={queue}>{(data) => <Details key={data.id} queue={data} />}</Loaded>;
}

function Details({ queue }: { queue: Queue }) {
  const mayChange = useMayChange(queue);
  const stats = useQuery(queries.queueStats(queue.id));
  const { data: statistics } = useQuery({
    ...queries.statistics(60, queue.id),
    // The figures of what all share are not for a tenant's eyes.
    enabled: mayChange,
  });
  return (
    <Page
      title={queue.name}
      lead={
        <>
          <QueueMark queue={queue} /> {queue.tenant_id ?? "shared by all tenants"}
          {queue.description === null ? null : <> · {queue.description}</>}
        </>
      }
      actions={
        mayChange ? (
          <>
            <PauseButton queue={queue} />
            <PurgeButton queue={queue} />
            <DeleteButton queue={queue} />
          </>
        ) : null
      }
    >
      <Share queue={queue} stats={stats.data} />
      {stats.error !== null && stats.data === undefined ? (
        <Failure error={stats.error} />
      ) : (
        <Stats stats={stats.data} queue={queue} />
      )}
      {statistics === undefined ? null : <MinuteCharts statistics={statistics} />}
      <Panel
        title="Settings and limits"
        actions={
          <Link to="/jobs" search={{ queue: queue.name }}>
            Jobs of this queue
          </Link>
        }
      >
        <QueueSettings key={queue.updated_at} queue={queue} isFixed={!mayChange} />
      </Panel>
    </Page>
  );
}

/** What all tenants use is counted for each of them alone. */
function Share({ queue, stats }: { queue: Queue; stats: QueueStats | undefined }) {
  const { tenant } = useSession();
  if (tenant === null || queue.tenant_id !== null) return null;
  return (
    <div className="note-box">
      All tenants use this queue; the figures are those of {tenant}.
      {stats?.is_complete === false ? " It has more jobs than are counted here." : null}
    </div>
  );
}

/** What is delayed or will be tried again waits, and is not ready. */
function oldestNote(oldest: number | null, waiting: number): string {
  if (oldest !== null) return "waiting for a worker";
  return waiting === 0 ? "nothing waits" : "all that wait are delayed";
}

function Stats({ stats, queue }: { stats: QueueStats | undefined; queue: Queue }) {
  const counts = stats?.counts;
  const times = stats?.processing_ms;
  const oldest = stats?.oldest_new_seconds ?? null;
  const longest = stats?.oldest_in_progress_seconds ?? null;
  const waiting = counts?.NEW ?? 0;
  const failed = counts?.FAILED ?? 0;
  const business = stats?.biz_exceptions ?? 0;
  const isDeep = queue.warn_depth !== null && waiting > queue.warn_depth;
  return (
    <Figures
      figures={[
        {
          label: "Waiting",
          value: short(waiting),
          note: queue.capacity === null ? "no limit" : `of ${short(queue.capacity)}`,
          ...(isDeep ? { tone: "warn" as const } : {}),
        },
        {
          label: "Running",
          value: short(counts?.IN_PROGRESS ?? 0),
          note: longest === null ? "none" : `longest ${duration(longest * 1_000)}`,
        },
        { label: "Completed", value: short(counts?.DONE ?? 0), note: "in all" },
        {
          label: "Dead letters",
          value: short(failed),
          note:
            failed === 0 ? (
              "none"
            ) : (
              <Link to="/dead-letters" search={{ queue: String(queue.id) }}>
                {business === 0
                  ? "look at them"
                  : plural(business, "business exception", "of them business exceptions")}
              </Link>
            ),
          ...(failed > 0 ? { tone: "bad" as const } : {}),
        },
        {
          label: "Oldest ready",
          value: oldest === null ? "–" : brief(oldest * 1_000),
          note: oldestNote(oldest, waiting),
        },
        {
          label: "Run time, p50",
          value: times ? brief(times.p50) : "–",
          note: times ? `p95 ${duration(times.p95)}, p99 ${duration(times.p99)}` : "none has ended",
        },
      ]}
    />
  );
}
