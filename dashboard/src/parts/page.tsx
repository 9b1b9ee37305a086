// The frame of a page and its panels.

import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { codeOf, messageOf } from "../api/service.ts";

interface PageProps {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Millrace`;
  }, [title]);
  return (
    <>
      <div className="head">
        <div>
          <h1>{title}</h1>
          {lead === undefined ? null : <p>{lead}</p>}
        </div>
        {actions === undefined ? null : <div className="row">{actions}</div>}
      </div>
      <div className="stack">{children}</div>
    </>
  );
}

interface PanelProps {
  readonly title: ReactNode;
  readonly actions?: ReactNode;
  readonly padded?: boolean;
  readonly children: ReactNode;
}

export function Panel({ title, actions, padded = true, children }: PanelProps) {
  return (
    <section className="panel">
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {padded ? <div className="body">{children}</div> : children}
    </section>
  );
}

export function Failure({ error }: { error: unknown }) {
  const isMissing = codeOf(error) === "ROUTE_NOT_FOUND";
  return (
    <div className="note-box" data-tone="bad" role="alert">
      {isMissing ? "This service is older than the dashboard and cannot tell." : messageOf(error)}
    </div>
  );
}

/** Shows what has arrived; until then that it is under way, or why it is not. */
export function Loaded<T>(props: {
  readonly query: UseQueryResult<T>;
  readonly children: (data: T) => ReactNode;
}) {
  const { data, error } = props.query;
  if (data !== undefined && (error === null || codeOf(error) === "SERVICE_UNAVAILABLE"))
    return (
      <>
        {error === null ? null : <Failure error={error} />}
        {props.children(data)}
      </>
    );
  if (error !== null) return <Failure error={error} />;
  return (
    <p className="soft" role="status">
      Loading…
    </p>
  );
}

export interface Figure {
  readonly label: string;
  readonly value: ReactNode;
  readonly unit?: string;
  readonly note?: ReactNode;
  readonly tone?: "good" | "warn" | "bad";
}

export const Figures = ({ figures }: { figures: readonly Figure[] }) => (
  <dl className="figures" data-many={figures.length > 6}>
    {figures.map(({ label, value, unit, note, tone = "" }) => (
      <div key={label}>
        <dt>{label}</dt>
        <dd className={`value ${tone}`}>
          {value}
          {unit === undefined ? null : <small>{unit}</small>}
        </dd>
        {note === undefined ? null : <dd className="note">{note}</dd>}
      </div>
    ))}
  </dl>
);

export const Facts = ({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) => (
  <dl className="facts">
    {facts.map(([name, value]) => (
      <div key={name} className="fact">
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
