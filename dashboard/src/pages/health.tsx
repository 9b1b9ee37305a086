import { useQuery } from "@tanstack/react-query";
import type { Readiness } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { useLive } from "../live/use-live.ts";
import { Mark } from "../parts/marks.tsx";
import { Facts, Loaded, Page, Panel } from "../parts/page.tsx";
import { moment } from "../parts/words.ts";
import { useSession } from "../shell/session.ts";
import { ClusterPanel } from "./cluster-panel.tsx";

const liveWords = {
  live: "server-sent events",
  polling: "asking every five seconds: the event stream cannot be had",
  paused: "paused",
} as const;

export function HealthPage() {
  const readiness = useQuery(queries.readiness());
  const session = useSession();
  const { status } = useLive();
  return (
    <Page title="Health">
      <div className="split">
        <Panel title="Can it serve?">
          <Loaded query={readiness}>{(data) => <Parts readiness={data} />}</Loaded>
        </Panel>
        <ClusterPanel />
      </div>
      <Panel title="This dashboard">
        <Facts
          facts={[
            ["Updates", liveWords[status]],
            ["Signed in as", `${session.name} (${session.role})`],
            ["Until", session.expires_at === null ? "the key ends" : moment(session.expires_at)],
            [
              "API",
              <a key="api" href="/api/openapi.json">
                /api/openapi.json
              </a>,
            ],
          ]}
        />
      </Panel>
    </Page>
  );
}

const hints: Readonly<Record<string, string>> = {
  unreachable: "Check DATABASE_URL and that PostgreSQL runs; millrace doctor says more.",
  vacant:
    "Start a manager: millrace manager. Until then nothing delayed falls due without a worker.",
};

function Parts({ readiness }: { readiness: Readiness }) {
  const { status, parts } = readiness;
  const bad = Object.values(parts).map((state) => hints[state]);
  return (
    <div className="stack">
      <Facts
        facts={[
          [
            "Service",
            <Mark key="service" tone={status === "ready" ? "good" : "bad"}>
              {status.replace("_", " ")}
            </Mark>,
          ],
          ...Object.entries(parts).map(
            ([name, state]) =>
              [
                name === "postgres" ? "PostgreSQL" : name[0]?.toUpperCase() + name.slice(1),
                <Mark key={name} tone={state in hints ? "bad" : "good"}>
                  {String(state).replace("_", " ")}
                </Mark>,
              ] as const,
          ),
        ]}
      />
      {bad.map((hint) =>
        hint === undefined ? null : (
          <div key={hint} className="note-box" data-tone="warn">
            {hint}
          </div>
        ),
      )}
    </div>
  );
}
