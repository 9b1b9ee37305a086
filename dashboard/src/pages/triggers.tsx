import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Trigger } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Ago, Empty, Mark } from "../parts/marks.tsx";
import { Loaded, Page, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { duration, plural } from "../parts/words.ts";
import { useMay } from "../shell/session.ts";
import { NewTriggerDialog } from "./new-trigger.tsx";

const route = getRouteApi("/triggers");

export function TriggerMark({ trigger }: { trigger: Trigger }) {
  if (!trigger.enabled) return <Mark>disabled</Mark>;
  if (trigger.failures > 0)
    return <Mark tone="bad">failed {plural(trigger.failures, "time")}</Mark>;
  return <Mark tone="good">enabled</Mark>;
}

export const ruleOf = (trigger: Trigger): string =>
  trigger.type === "TIME"
    ? `${trigger.cron ?? ""} ${trigger.time_zone ?? "UTC"}`
    : `items of ${trigger.queue ?? ""}, ${trigger.batch_size} at a time, every ${duration(trigger.polling_interval_ms)}`;

const columns: readonly Column<Trigger>[] = [
  {
    id: "name",
    header: "Trigger",
    sort: ({ name }) => name,
    cell: ({ id, name, tenant_id }) => (
      <>
        <Link to="/triggers/$id" params={{ id }} data-row>
          {name}
        </Link>
        <span className="soft small clip">{tenant_id}</span>
      </>
    ),
  },
  {
    id: "rule",
    header: "Rule",
    wide: true,
    cell: (trigger) => <span className="mono clip">{ruleOf(trigger)}</span>,
  },
  {
    id: "makes",
    header: "Makes",
    wide: true,
    sort: ({ job_type }) => job_type,
    cell: ({ job_type, job_queue }) => (
      <>
        {job_type}
        <span className="soft small clip">{job_queue}</span>
      </>
    ),
  },
  { id: "state", header: "State", cell: (trigger) => <TriggerMark trigger={trigger} /> },
  {
    id: "last",
    header: "Last",
    sort: ({ last_fired_at }) => last_fired_at ?? "",
    cell: ({ last_fired_at }) => <Ago at={last_fired_at} none="never" />,
  },
  {
    id: "next",
    header: "Next",
    sort: ({ next_fire_at }) => next_fire_at ?? "~",
    cell: ({ next_fire_at, type }) => (
      <Ago at={next_fire_at} none={type === "QUEUE" ? "when items wait" : "never"} />
    ),
  },
  {
    id: "missed",
    header: "Missed slots",
    wide: true,
    cell: ({ type, missed_slots }) => (type === "TIME" ? missed_slots : "–"),
  },
];

export function TriggersPage() {
  const { type, sort = "next" } = route.useSearch();
  const navigate = route.useNavigate();
  const isManager = useMay("manager");
  const [isMaking, setMaking] = useState(false);
  const triggers = useQuery(queries.triggers(type === undefined ? {} : { type }));
  const set = (change: { type?: string; sort?: string }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <Page
      title="Triggers"
      lead="Rules that create jobs: by time, or from items that wait in a queue."
      actions={
        isManager ? (
          <button type="button" className="primary" onClick={() => setMaking(true)}>
            New trigger…
          </button>
        ) : null
      }
    >
      <div className="fields">
        <label>
          Kind
          <select value={type ?? ""} onChange={(event) => set({ type: event.target.value })}>
            <option value="">all</option>
            <option value="TIME">by time</option>
            <option value="QUEUE">from a queue</option>
          </select>
        </label>
      </div>
      <Loaded query={triggers}>
        {({ triggers: rows }) => (
          <Panel title={plural(rows.length, "trigger")} padded={false}>
            <Table
              label="Triggers"
              columns={columns}
              rows={rows}
              keyOf={({ id }) => id}
              sort={sort}
              onSort={(next) => set({ sort: next })}
              empty={
                <Empty
                  title="No triggers"
                  command={`millrace.triggers.create({ type: "TIME", name: "nightly", cron: "0 3 * * *", job })`}
                >
                  <p>A trigger runs a job every night, or turns waiting items into jobs:</p>
                </Empty>
              }
            />
          </Panel>
        )}
      </Loaded>
      {isMaking ? <NewTriggerDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}
