// The trail keeps ids, which stay true when names change. People read names: where one is known, it is shown.

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { AuditEntry } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { useMay } from "../shell/session.ts";

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

function useKeyName(id: string): string | undefined {
  const isAdmin = useMay("admin");
  const { data } = useQuery({ ...queries.keys(), enabled: isAdmin });
  return data?.keys.find((key) => key.id === id)?.name;
}

export function AuditTarget({ entry }: { entry: AuditEntry }): ReactNode {
  const { action, target } = entry;
  if (/^(?:job|dlq|dead)/.test(action) && uuid.test(target))
    return (
      <Link to="/jobs/$id" params={{ id: target }} className="mono" data-row>
        {target}
      </Link>
    );
  if (/^trigger/.test(action) && uuid.test(target))
    return (
      <Link to="/triggers/$id" params={{ id: target }} className="mono" data-row>
        {target}
      </Link>
    );
  if (/^queue/.test(action) && /^\d+$/.test(target)) return <QueueName entry={entry} />;
  if (/^(?:key|session)/.test(action)) return <KeyName id={target} />;
  return <span className="mono">{target}</span>;
}

function QueueName({ entry: { target, details } }: { entry: AuditEntry }) {
  const { data: queues } = useQuery(queries.queues());
  const queue = queues?.find(({ id }) => String(id) === target);
  const { name } = (details ?? {}) as { readonly name?: unknown };
  if (queues === undefined) return target;
  if (queue === undefined)
    return (
      <>
        {typeof name === "string" ? name : "queue"}
        <span className="soft small clip">no. {target}, deleted</span>
      </>
    );
  return (
    <>
      <Link to="/queues/$id" params={{ id: target }} data-row>
        {queue.name}
      </Link>
      <span className="soft small clip">queue no. {target}</span>
    </>
  );
}

/** It has no name and no row: the service's environment holds it. */
const adminKeyId = "00000000-0000-0000-0000-000000000001";

const AdminKey = () => (
  <>
    admin
    <span className="soft small clip">the service's own key</span>
  </>
);

function KeyName({ id }: { id: string }) {
  const name = useKeyName(id);
  if (id === adminKeyId) return <AdminKey />;
  return (
    <>
      {name ?? "key"}
      <span className="soft small mono clip">{id}</span>
    </>
  );
}

/** As the corner of the page calls them: a key by its name, the service's own key by its role. */
export function AuditActor({ actor }: { actor: string }) {
  const key = /^key:(.+)$/.exec(actor)?.[1];
  if (key !== undefined) return <KeyName id={key} />;
  if (actor === "MILLRACE_ADMIN_KEY") return <AdminKey />;
  return <span className="clip">{actor}</span>;
}
