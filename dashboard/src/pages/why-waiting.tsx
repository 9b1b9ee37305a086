import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import * as queries from "../api/queries.ts";
import { Ago } from "../parts/marks.tsx";
import { Loaded, Panel } from "../parts/page.tsx";
import { moment } from "../parts/words.ts";

/** The service tells times as programs do. */
const withMoments = (message: string) =>
  message.replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, (at) => moment(at));

/** Asks the same conditions as the workers do. */
export function WhyWaiting({ id }: { id: string }) {
  const explanation = useQuery(queries.explanation(id));
  const title = explanation.data?.running ? "Where it runs" : "Why it is waiting";
  return (
    <Panel title={title}>
      <Loaded query={explanation}>
        {({ reasons }) => (
          <ul className="stack">
            {reasons.map(({ code, message, until = null, holders = [] }) => (
              <li key={code}>
                <p>{withMoments(message)}</p>
                <p className="soft small">
                  <code>{code}</code>
                  {until === null ? null : (
                    <>
                      {" "}
                      ends <Ago at={until} />
                    </>
                  )}
                </p>
                {holders.map(({ job_id, worker }) => (
                  <p key={job_id} className="small">
                    <Link to="/jobs/$id" params={{ id: job_id }} className="mono">
                      {job_id}
                    </Link>{" "}
                    <span className="soft">{worker}</span>
                  </p>
                ))}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  );
}
