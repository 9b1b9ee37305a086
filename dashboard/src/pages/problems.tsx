// Queues that somebody should look at, the worst first, each with what is wrong in words.

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Queue, QueueStats, Statistics } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Panel } from "../parts/page.tsx";
import { duration, plural } from "../parts/words.ts";
import { useSession } from "../shell/session.ts";

interface Problem {
  readonly key: string;
  readonly weight: number;
  readonly where: ReactNode;
  readonly what: string;
}

const longWaitSeconds = 60;
/** One run in ten. */
const badShare = 0.1;

function problemOf(
  counts: Statistics["queues"][number],
  queue: Queue | undefined,
  stats: QueueStats | undefined,
): { readonly weight: number; readonly what: string } | null {
  const { recent, depth } = counts;
  const runs = recent.completed + recent.retried + recent.dead;
  const failed = recent.retried + recent.dead;
  if (queue?.paused && depth > 0)
    return { weight: 3, what: `paused with ${plural(depth, "job")} in it` };
  if (recent.dead > 0)
    return {
      weight: 5 + recent.dead,
      what: `${plural(recent.dead, "dead letter")} in the last hour`,
    };
  if (runs >= 10 && failed / runs >= badShare)
    return { weight: 2, what: `${Math.round((100 * failed) / runs)} % of its runs fail` };
  const waits = stats?.oldest_new_seconds ?? 0;
  if (waits > longWaitSeconds)
    return { weight: 1, what: `its oldest job has waited ${duration(waits * 1_000)}` };
  if (queue?.capacity && depth >= queue.capacity * 0.9)
    return { weight: 4, what: `${plural(depth, "job")} of at most ${queue.capacity}` };
  if (queue?.warn_depth && depth >= queue.warn_depth)
    return { weight: 2, what: `deeper than its mark of ${queue.warn_depth}` };
  return null;
}

export function ProblemList(props: {
  readonly statistics: Statistics;
  readonly stats: ReadonlyMap<number, QueueStats | undefined>;
}) {
  const { tenant } = useSession();
  const { data: settings = [] } = useQuery(queries.queues());
  const { data: breakers } = useQuery({ ...queries.breakers(), enabled: tenant === null });
  const byId = new Map(settings.map((queue) => [queue.id, queue]));
  const problems: Problem[] = props.statistics.queues.flatMap((counts) => {
    const id = counts.queue_id;
    const found = problemOf(counts, byId.get(id), props.stats.get(id));
    const where = (
      <Link key={id} to="/queues/$id" params={{ id: String(id) }}>
        {counts.name}
      </Link>
    );
    return found === null ? [] : [{ ...found, key: `queue ${id}`, where }];
  });
  for (const { name, state, last_error } of breakers?.breakers ?? [])
    if (!/^closed$/i.test(state))
      problems.push({
        ...{ key: `breaker ${name}`, weight: Number.MAX_SAFE_INTEGER },
        where: <Link to="/breakers">{name}</Link>,
        what: `breaker ${state.toLowerCase().replace("_", " ")}${last_error ? `: ${last_error}` : ""}`,
      });
  problems.sort((a, b) => b.weight - a.weight);
  return (
    <Panel title="Needs a look" padded={false}>
      {problems.length === 0 ? (
        <p className="empty good">Nothing does.</p>
      ) : (
        <ul className="list">
          {problems.slice(0, 8).map(({ key, where, what }) => (
            <li key={key}>
              {where}
              <span className="soft">{what}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
