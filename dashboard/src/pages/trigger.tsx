import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Trigger } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { messageOf, send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Ago, Json } from "../parts/marks.tsx";
import { Facts, Loaded, Page, Panel } from "../parts/page.tsx";
import { plural } from "../parts/words.ts";
import { useMay } from "../shell/session.ts";
import { FirePreview } from "./fire-preview.tsx";
import { ruleOf, TriggerMark } from "./triggers.tsx";

const route = getRouteApi("/triggers/$id");

const policies: Readonly<Record<string, string>> = {
  skip: "are passed over",
  last: "are made up for by one job, for the last of them",
  all: "are made up for, each by a job",
};

export function TriggerPage() {
  const { id } = route.useParams();
  const trigger = useQuery(queries.trigger(id));
  return <Loaded query={trigger}>{(data) => <Details trigger={data} />}</Loaded>;
}

function Details({ trigger }: { trigger: Trigger }) {
  const isManager = useMay("manager");
  return (
    <Page
      title={trigger.name}
      lead={
        <>
          <TriggerMark trigger={trigger} /> <span className="mono">{ruleOf(trigger)}</span>
        </>
      }
      {...(isManager ? { actions: <TriggerActions trigger={trigger} /> } : {})}
    >
      {trigger.last_error === null ? null : (
        <div className="note-box" data-tone="bad">
          <b>{trigger.last_error.code}</b> {trigger.last_error.message}
          {trigger.retry_at === null ? null : (
            <>
              , tried again <Ago at={trigger.retry_at} />
            </>
          )}
        </div>
      )}
      <div className="split">
        <Panel title="About it">
          <About trigger={trigger} />
        </Panel>
        {trigger.cron === null ? null : (
          <Panel title={`Next fire times, ${trigger.time_zone ?? "UTC"}`}>
            {trigger.enabled ? null : <p className="warn">It is disabled; enabled, it would be:</p>}
            <FirePreview cron={trigger.cron} timeZone={trigger.time_zone ?? "UTC"} />
          </Panel>
        )}
      </div>
      {trigger.payload === null ? null : (
        <Panel title="Payload of its jobs">
          <Json value={trigger.payload} label="Payload" />
        </Panel>
      )}
    </Page>
  );
}

function About({ trigger }: { trigger: Trigger }) {
  const facts: [string, ReactNode][] = [
    ["Tenant", trigger.tenant_id],
    ["Makes", `${trigger.job_type} in ${trigger.job_queue}`],
    ["Priority", trigger.priority ?? "normal"],
    ["Last fired", <Ago key="last" at={trigger.last_fired_at} none="never" />],
    ["Next", <Ago key="next" at={trigger.next_fire_at} none="not by itself" />],
    [
      "Last job",
      trigger.last_job_id === null ? (
        "none"
      ) : (
        <Link key="job" to="/jobs/$id" params={{ id: trigger.last_job_id }} className="mono">
          {trigger.last_job_id}
        </Link>
      ),
    ],
  ];
  if (trigger.type === "TIME")
    facts.push([
      "Missed slots",
      `${policies[trigger.missed_slots] ?? trigger.missed_slots}, at most ${plural(trigger.max_catch_up, "slot")}`,
    ]);
  if (trigger.failures > 0) facts.push(["Failures in a row", String(trigger.failures)]);
  return <Facts facts={facts} />;
}

function TriggerActions({ trigger }: { trigger: Trigger }) {
  const { confirm, say, refresh } = useActions();
  const navigate = useNavigate();
  const path = `/api/triggers/${trigger.id}`;
  const flip = async () => {
    try {
      await send("PUT", path, { enabled: !trigger.enabled });
      say(`${trigger.name} is ${trigger.enabled ? "disabled" : "enabled"}.`);
    } catch (error) {
      say(messageOf(error));
    }
    await refresh();
  };
  const remove = () =>
    confirm({
      title: `Delete ${trigger.name}?`,
      text: <p>It fires no more. Jobs it has made stay.</p>,
      ...{ action: "Delete the trigger", isDangerous: true },
      run: async () => {
        await send("DELETE", path);
        say(`${trigger.name} is deleted.`);
        await navigate({ to: "/triggers" });
      },
    });
  return (
    <>
      <button type="button" onClick={() => void flip()}>
        {trigger.enabled ? "Disable" : "Enable"}
      </button>
      <button type="button" className="danger" onClick={remove}>
        Delete…
      </button>
    </>
  );
}
