// What became of a job, run by run.

import type { ReactNode } from "react";
import type { FullJob, Run } from "../api/answers.ts";
import { Ago, type Tone, toneOf } from "../parts/marks.tsx";
import { duration, moment } from "../parts/words.ts";

const outcomeWords: Readonly<Record<string, string>> = {
  completed: "completed",
  retried: "failed, tried again",
  snoozed: "put off",
  dead: "failed for good",
  failed: "failed for good",
  lapsed: "its worker died",
  released: "given back by a worker that stopped",
  cancelled: "cancelled",
};

function Entry(props: {
  readonly tone?: Tone;
  readonly title: ReactNode;
  readonly at: string | null;
  readonly children?: ReactNode;
}) {
  return (
    <li data-tone={props.tone ?? "calm"}>
      <div>{props.title}</div>
      <div className="soft small" title={props.at === null ? undefined : moment(props.at)}>
        <Ago at={props.at} />
      </div>
      {props.children === undefined ? null : <div className="said">{props.children}</div>}
    </li>
  );
}

function RunEntry({ run }: { run: Run }) {
  const took = Date.parse(run.ended_at) - Date.parse(run.started_at);
  const times = run.times > 1 ? ` ${run.times} times` : "";
  return (
    <Entry
      tone={toneOf(run.outcome)}
      at={run.ended_at}
      title={
        <>
          <strong>Attempt {run.attempt}</strong> {outcomeWords[run.outcome] ?? run.outcome}
          {times} <span className="soft">after {duration(took)}</span>
        </>
      }
    >
      <span className="small">
        {run.worker}
        {run.error_class === null ? "" : ` · ${run.error_class}`}
      </span>
      {run.message === null ? null : <div>{run.message}</div>}
    </Entry>
  );
}

export function Timeline({ job }: { job: FullJob }) {
  const isRunning = job.state === "running";
  const waits = job.state === "scheduled" || job.state === "ready";
  return (
    <ol className="runs">
      <Entry title={<strong>Enqueued</strong>} at={job.created_at} />
      {job.timeline.map((run) => (
        <RunEntry key={`${run.attempt} ${run.started_at} ${run.ended_at}`} run={run} />
      ))}
      {isRunning ? (
        <Entry
          tone="accent"
          title={
            <>
              <strong>Attempt {job.attempt}</strong> runs
            </>
          }
          at={job.started_at}
        />
      ) : null}
      {waits ? (
        <Entry
          tone="accent"
          title={<strong>{job.state === "ready" ? "Waits for a worker" : "Due"}</strong>}
          at={job.state === "ready" ? null : job.due_at}
        />
      ) : null}
      {isRunning || waits || job.timeline.at(-1)?.outcome === job.state ? null : (
        <Entry tone={toneOf(job.state)} title={<strong>{job.state}</strong>} at={job.finished_at}>
          {job.closed_reason}
        </Entry>
      )}
    </ol>
  );
}
