import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { FullJob } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { get, messageOf } from "../api/service.ts";
import { Ago, Copy, Json, StateMark } from "../parts/marks.tsx";
import { Facts, Loaded, Page, Panel } from "../parts/page.tsx";
import { moment } from "../parts/words.ts";
import { mayAct, useMay, useSession } from "../shell/session.ts";
import { JobActions } from "./job-actions.tsx";
import { Timeline } from "./job-timeline.tsx";
import { WhyWaiting } from "./why-waiting.tsx";

const route = getRouteApi("/jobs/$id");

export function JobPage() {
  const { id } = route.useParams();
  const job = useQuery(queries.job(id));
  return (
    <Page
      title={job.data?.type ?? "Job"}
      lead={
        <>
          <span className="mono">{id}</span> <Copy text={id} label="Copy id" />
        </>
      }
      {...(job.data === undefined ? {} : { actions: <JobActions job={job.data} /> })}
    >
      <Loaded query={job}>{(data) => <Details key={data.id} job={data} />}</Loaded>
    </Page>
  );
}

function Details({ job }: { job: FullJob }) {
  return (
    <div className="split">
      <div className="stack">
        {/^(?:ready|scheduled|running)$/.test(job.state) ? <WhyWaiting id={job.id} /> : null}
        {job.error_class === null ? null : <JobError job={job} />}
        <Panel title="Timeline">
          <Timeline job={job} />
        </Panel>
        <Contents job={job} />
      </div>
      <Panel title="About it">
        <About job={job} />
      </Panel>
    </div>
  );
}

const JobError = ({ job }: { job: FullJob }) => (
  <Panel
    title="Last error"
    actions={
      job.state === "dead" && job.error_fingerprint !== null ? (
        <Link to="/dead-letters" search={{ fingerprint: job.error_fingerprint }}>
          Others like it
        </Link>
      ) : null
    }
  >
    <div className="stack">
      <p>
        <StateMark state={job.error_class ?? ""} /> <span className="bad">{job.error_message}</span>
      </p>
      {job.error_stack === null ? null : <Json value={job.error_stack} label="Stack" />}
    </div>
  </Panel>
);

const JobLink = ({ id }: { id: string }) => (
  <Link to="/jobs/$id" params={{ id }} className="mono">
    {id}
  </Link>
);

const found = (by: string, find: string): ReactNode => (
  <Link to="/jobs" search={{ by, find }} className="mono">
    {find}
  </Link>
);

const time = (at: string | null): ReactNode =>
  at === null ? (
    "–"
  ) : (
    <>
      {moment(at)}{" "}
      <span className="soft">
        <Ago at={at} />
      </span>
    </>
  );

function About({ job }: { job: FullJob }) {
  const session = useSession();
  const isStaff = mayAct(session, "staff");
  const facts: [string, ReactNode][] = [
    ["State", <StateMark key="state" state={job.state} />],
    [
      "Queue",
      <Link key="queue" to="/jobs" search={{ queue: job.queue }}>
        {job.queue}
      </Link>,
    ],
    ["Tenant", job.tenant_id],
    ["Category", job.category ?? "none"],
    ["Weight", `${job.weight} (lower runs first)`],
    ["Attempt", `${job.attempt} of ${job.max_attempts}`],
    ["Created", time(job.created_at)],
    ["Due", time(job.due_at)],
    ["Started", time(job.started_at)],
    ["Finished", time(job.finished_at)],
    ["Correlation", found("correlation_id", job.correlation_id)],
    ["Idempotency key", found("idempotency_key", job.idempotency_key)],
  ];
  if (job.expires_at !== null) facts.push(["Expires", time(job.expires_at)]);
  if (job.reference !== null) facts.push(["Reference", found("reference", job.reference)]);
  if (job.crash_count > 0) facts.push(["Crashes", String(job.crash_count)]);
  if (job.cancel_requested) facts.push(["Cancel", "asked for"]);
  if (job.reprocess_of !== null)
    facts.push(["Made again from", <JobLink key="of" id={job.reprocess_of} />]);
  if (job.reprocessed_as !== null)
    facts.push(["Made again as", <JobLink key="as" id={job.reprocessed_as} />]);
  if (job.trigger_id !== null)
    facts.push([
      "Trigger",
      isStaff ? (
        <Link key="trigger" to="/triggers/$id" params={{ id: job.trigger_id }} className="mono">
          {job.trigger_id}
        </Link>
      ) : (
        job.trigger_id
      ),
    ]);
  if (job.closed_reason !== null) facts.push(["Closed because", job.closed_reason]);
  return <Facts facts={facts} />;
}

/** Payload and result: producers know what they sent; for managers reading is an act, and noted. */
function Contents({ job }: { job: FullJob }) {
  const mayRead = useMay("manager");
  const [shown, setShown] = useState<FullJob | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const read = async () => {
    try {
      setShown(await get<FullJob>(`/api/jobs/${job.id}`, { include_payload: true }));
    } catch (error) {
      setProblem(error);
    }
  };
  const contents = job.payload_masked ? shown : job;
  return (
    <Panel title="Payload and result">
      {contents === null ? (
        <div className="row">
          {mayRead ? (
            <button type="button" onClick={() => void read()}>
              Show payload
            </button>
          ) : null}
          <span className="soft">
            {mayRead ? "Reading it leaves an audit entry." : "Managers can read it."}
          </span>
          {problem === null ? null : <span className="bad">{messageOf(problem)}</span>}
        </div>
      ) : (
        <div className="stack">
          <h3>Payload</h3>
          <Json value={contents.payload} label="Payload" />
          <h3>Result</h3>
          <Json value={contents.result} label="Result" />
        </div>
      )}
    </Panel>
  );
}
